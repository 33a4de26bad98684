// What the pages do beyond links and forms: parts that renew themselves, sentences beside a form, files dropped on it.
"use strict";

const EVERY = 1000;
const LONGEST = 15000;
const SETTLED = 400; // a button that is being pressed is not taken away

function say(sentence) {
  const place = document.getElementById("said");
  if (place && sentence && place.textContent !== sentence) place.textContent = sentence;
}

// Puts a part of a page in the place of an earlier one, and keeps what the visitor opened or stands on.
function replace(old, html) {
  const made = new DOMParser().parseFromString(html, "text/html").getElementById(old.id);
  if (!made || made.outerHTML === old.outerHTML) return old;
  const open = [...old.querySelectorAll("details[open][id]")].map((one) => one.id);
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  const words = held ? held.textContent : "";
  const imported = document.importNode(made, true);
  old.replaceWith(imported);
  if (imported.dataset.next) location.assign(imported.dataset.next);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (held) [...imported.querySelectorAll("a, button, summary")].find((one) => one.textContent === words)?.focus();
  say(imported.dataset.say);
  watch(imported);
  return imported;
}

async function renew(element, wait) {
  const path = element.dataset.poll || element.dataset.load;
  let next = EVERY;
  try {
    const answer = await fetch(path, { headers: { Accept: "text/html" } });
    away(false);
    if (answer.ok) element = replace(element, await answer.text());
    else next = LONGEST;
  } catch {
    next = Math.min(LONGEST, wait * 2); // the server is away; it may come back
    away(true);
  }
  if (element.isConnected && element.dataset.poll) setTimeout(() => renew(element, next), next);
}

// Says, where everybody sees it, that the server went away, and takes that back when it is there again.
function away(gone) {
  const place = document.getElementById("away");
  if (place) place.hidden = !gone;
}

function watch(root) {
  for (const form of root.querySelectorAll("form.send")) begin(form);
  for (const place of root.querySelectorAll(".drop")) takesDrops(place);
  for (const input of root.querySelectorAll("input[data-at-once]")) input.addEventListener("change", () => input.form.requestSubmit());
}

// A sentence beside the field it is about, or else at the end of the form.
function refuse(form, sentence, name) {
  for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  const field = name ? form.querySelector(`[name="${CSS.escape(name)}"]`) : null;
  const place = form.querySelector(".problem") || document.createElement("p");
  place.className = "problem";
  place.setAttribute("role", "alert");
  if (field) {
    field.setAttribute("aria-invalid", "true");
    field.closest(".field").append(place);
  } else form.append(place);
  place.textContent = sentence;
  place.hidden = false;
  place.tabIndex = -1;
  (field || place).focus();
}

// What was dropped or chosen, with the path of each file within its folder.
const dropped = new WeakMap();

function filesOf(form) {
  const inputs = [...form.elements].filter((one) => one.type === "file");
  const chosen = inputs.flatMap((one) => [...one.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
  return [...chosen, ...(dropped.get(form) || [])];
}

function tooLarge(form, files) {
  const [input] = [...form.elements].filter((one) => one.dataset.most);
  const most = input ? Number(input.dataset.most) : Infinity;
  const size = files.reduce((sum, one) => sum + one.file.size, 0);
  if (size <= most) return "";
  const what = files.length > 1 ? `These ${files.length} files are` : `${files[0].file.name} is`;
  return `${what} larger than ${Math.floor(most / 1e6)} MB, the most that is taken here: choose less.`;
}

async function send(form, pressed) {
  const files = filesOf(form);
  const large = tooLarge(form, files);
  if (large) return refuse(form, large);
  const button = pressed || [...form.elements].find((one) => one.type === "submit");
  const content = new FormData(form);
  if (button.name) content.append(button.name, button.value);
  const beside = form.dataset.with && new FormData(document.getElementById(form.dataset.with));
  if (beside) for (const [name, value] of beside) if (!content.has(name)) content.append(name, value);
  if (content.has("file")) content.delete("file");
  for (const { file, path } of files) content.append("file", file, path);
  const words = button.innerHTML;
  button.disabled = true;
  form.dataset.sends = "yes";
  button.textContent = "One moment …"; // a large file is read whole before the next page
  try {
    const answer = await fetch(pressed?.getAttribute("formaction") || form.action, { method: "POST", body: content });
    if (answer.ok) return void location.assign(answer.url + (form.dataset.then || ""));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const said = page.getElementById("sentence");
    const shown = form.dataset.with ? document.getElementById(form.dataset.with) : form;
    refuse(shown, said?.textContent || `The server answered ${answer.status}: try again.`, said?.dataset.field);
  } catch {
    refuse(form, "The server does not answer, or broke off because this is too large: see whether pretrace serve is running.");
  }
  dropped.delete(form);
  for (const one of form.elements) if (one.type === "file") one.value = "";
  delete form.dataset.sends;
  button.disabled = false;
  button.innerHTML = words;
}

function begin(form) {
  form.addEventListener("submit", (event) => {
    if ((event.submitter?.getAttribute("formmethod") || form.method) !== "post") return;
    event.preventDefault();
    send(form, event.submitter);
  });
  if (form.dataset.live) form.addEventListener("change", () => setTimeout(() => answered(form), SETTLED));
}

// Shows what follows from a form that was changed, in the parts of the page that it names.
async function answered(form) {
  if (form.dataset.sends) return;
  const address = new URL(form.action);
  address.search = new URLSearchParams(new FormData(form));
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok || form.dataset.sends) return;
  const html = await answer.text();
  for (const id of form.dataset.live.split(" ")) replace(document.getElementById(id), html);
  history.replaceState(null, "", address);
}

// The files of a folder that was dropped, at any depth.
async function within(entry, path = "") {
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    return [{ file, path: path + file.name }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed)); // a hundred at a time
    if (!some.length) return found;
    for (const one of some) found.push(...(await within(one, `${path}${entry.name}/`)));
  }
}

function takesDrops(place) {
  const input = place.querySelector("input[type=file]");
  const form = input.form;
  place.addEventListener("dragover", (event) => {
    event.preventDefault();
    place.classList.add("over");
  });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", async (event) => {
    event.preventDefault();
    place.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean);
    const plain = [...event.dataTransfer.files].map((file) => ({ file, path: file.name }));
    const text = form.querySelector("textarea");
    if (text) return void takeText(form, text, input, event.dataTransfer.files);
    let files;
    try {
      files = entries.length ? (await Promise.all(entries.map((one) => within(one)))).flat() : plain;
    } catch {
      return refuse(form, "The browser cannot read what was dropped: choose it with the button.");
    }
    if (!files.length) return;
    dropped.set(form, files);
    say(files.length > 1 ? `${files.length} files were dropped.` : `${files[0].path} was dropped.`);
    form.requestSubmit();
  });
}

// A plain text is put into the field, where it can be read; what has to be read first stays a file.
function takeText(form, text, input, files) {
  if (!files.length) return;
  input.files = files;
  say(`${files[0].name} was chosen.`);
  if (files[0].size > 1e6 || /\.(docx|pdf|html?|md|markdown)$/i.test(files[0].name)) return;
  files[0].text().then((content) => { text.value = content; input.value = ""; });
}

document.documentElement.classList.add("scripted");
watch(document);
for (const element of document.querySelectorAll("[data-poll], [data-load]")) renew(element, EVERY);
