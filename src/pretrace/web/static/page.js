// What the pages do beyond links and forms: parts that renew themselves, sentences beside a form, files dropped on it.
"use strict";

const EVERY = 1000;
const LONGEST = 15000;

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
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (held) [...imported.querySelectorAll("a, button, summary")].find((one) => one.textContent === words)?.focus();
  say(imported.dataset.say);
  watch(imported);
  readable(imported);
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

const watched = new WeakSet();
function watch(root) {
  const forms = [...root.querySelectorAll("form.send")];
  for (const form of forms) if (!watched.has(form)) begin(form);
}

function refuse(form, sentence) {
  const place = form.querySelector(".problem") || document.createElement("p");
  if (!place.isConnected) {
    place.className = "problem";
    place.setAttribute("role", "alert");
    form.append(place);
  }
  place.textContent = sentence;
  place.hidden = false;
  place.tabIndex = -1;
  place.focus();
}

function tooLarge(form) {
  for (const input of form.querySelectorAll("input[type=file][data-most]")) {
    const most = Number(input.dataset.most);
    const file = [...input.files].find((one) => one.size > most);
    if (file) return `${file.name} is larger than ${Math.floor(most / 1e6)} MB, the most that is taken here: choose a smaller one.`;
  }
  return "";
}

async function send(form, pressed) {
  const large = tooLarge(form);
  if (large) return refuse(form, large);
  const button = pressed || form.querySelector("button[type=submit]");
  const content = new FormData(form);
  if (button.name) content.append(button.name, button.value);
  const words = button.textContent;
  button.disabled = true;
  button.textContent = "One moment …"; // a large file is read whole before the next page
  try {
    const answer = await fetch(form.action, { method: "POST", body: content });
    if (answer.ok) return void location.assign(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    refuse(form, page.getElementById("sentence")?.textContent || `The server answered ${answer.status}: try again.`);
  } catch {
    refuse(form, "The server does not answer, or broke off because this is too large: see whether pretrace serve is running.");
  }
  button.disabled = false;
  button.textContent = words;
}

function begin(form) {
  watched.add(form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, event.submitter);
  });
  if (!form.classList.contains("drop")) return;
  const input = form.querySelector("input[type=file]");
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    say(input.files.length > 1 ? `${input.files.length} files were chosen.` : `${input.files[0].name} was chosen.`);
    const text = form.querySelector("textarea");
    if (text && input.files[0].size < 1e6) input.files[0].text().then((content) => { text.value = content; input.value = ""; });
  });
}

// Charts of one line: the pointer, a finger or the arrow keys choose a mark, whose words stand below.
function readable(root) {
  for (const chart of root.querySelectorAll("svg.strip")) {
    const marks = [...chart.querySelectorAll("[data-say]")].sort((one, other) => one.x1.baseVal.value - other.x1.baseVal.value);
    const words = chart.parentElement.querySelector("output");
    let at = marks.findIndex((one) => one.classList.contains("own"));
    const choose = (next) => {
      at = Math.max(0, Math.min(marks.length - 1, next));
      for (const one of marks) one.classList.toggle("here", one === marks[at]);
      words.textContent = marks[at].dataset.say;
    };
    const near = (event) => {
      const box = chart.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const away = marks.map((one) => Math.abs(one.x1.baseVal.value - place));
      choose(away.indexOf(Math.min(...away)));
    };
    chart.addEventListener("pointermove", near);
    chart.addEventListener("pointerdown", near);
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -marks.length, End: marks.length }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(at + step);
    });
  }
}

// Two ticks in the list of results are the two sides of the next page.
function pickTwo() {
  const link = document.getElementById("compare");
  const ticks = [...document.querySelectorAll(".pick")];
  const changed = () => {
    const names = ticks.filter((one) => one.checked).map((one) => encodeURIComponent(one.value));
    link.href = "/compare?" + ["one", "other"].slice(0, names.length).map((side, place) => `${side}=${names[place]}`).join("&");
    for (const one of ticks) one.disabled = names.length >= 2 && !one.checked;
  };
  for (const one of ticks) one.addEventListener("change", changed);
  if (link) changed();
}

// Languages come as codes; the browser knows their names.
function nameLanguages() {
  const names = new Intl.DisplayNames("en", { type: "language" });
  for (const one of document.querySelectorAll("[data-language]")) one.textContent = names.of(one.dataset.language);
}

watch(document);
readable(document);
pickTwo();
nameLanguages();
for (const element of document.querySelectorAll("[data-poll], [data-load]")) renew(element, EVERY);
