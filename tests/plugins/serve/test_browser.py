"""The three jobs of the page in a real browser, from start to finish, with a tiny model and real commands."""

import random
import re
import shutil
import signal
import uuid

import pytest
from made import drawn, run_of, written
from processes import INSTEAD

from pretrace.runs import save_run

sync_api = pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")
expect = sync_api.expect
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PHONE = {"width": 390, "height": 780}
WAIT = 90_000
expect.set_options(timeout=WAIT)  # a click may return before the page that it opens is there
NASTY = '</textarea><script>document.title = "taken"</script>"\'><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def tab(browser, site):
    """Opens a tab; at the end no page has complained, and none has asked anything of another machine."""
    context = browser.new_context(base_url=site.address)
    context.set_default_timeout(WAIT)
    complaints = []

    def opened(path="/"):
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.extend([said.text] * ("Security Policy" in said.text)))
        page.on("request", lambda asked: complaints.extend([asked.url] * (site.address not in asked.url)))
        page.goto(path)
        return page

    yield opened
    context.close()
    assert not complaints


def side(folder, name, number, words, strings=0):
    """A file of texts; so many of them hold a random string."""
    rows = drawn(number, words, seed=ord(name[0]), name=name)
    for i, row in enumerate(rows[:strings]):
        row["text"] += f" {uuid.UUID(int=random.Random(i).getrandbits(128), version=4)}"
    return written(folder / f"{name}.jsonl", rows)


@pytest.fixture
def files(tmp_path):
    """A collection and known non-members of the same kind."""
    return {name: side(tmp_path, name, 25, 30) for name in ("texts", "known")}


@pytest.fixture
def marked(tmp_path):
    """A collection with a random string in some of its texts, and control documents of the same kind."""
    return {"texts": side(tmp_path, "texts", 20, 60, strings=6), "known": side(tmp_path, "known", 20, 60)}


DROP = """form => {
    const dropped = new DataTransfer();
    dropped.items.add(new File(["It rained.\\nThen it snowed."], "weather.txt"));
    form.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(autouse=True)
def _no_child_is_left(site):
    from pretrace.plugins.serve import Workspace
    from pretrace.plugins.serve.jobs import Jobs, WebJob

    yield
    jobs = Jobs(Workspace.at(site.workspace))
    for job in jobs.workspace.records(WebJob):
        jobs._signal(job, signal.SIGKILL)


def upload(page, path, label="Upload texts"):
    page.goto("/collections")
    page.get_by_label(label, exact=True).set_input_files(path)
    page.wait_for_url("**/collections/2*")


def check_width(page):
    """On a phone the page is no wider than its window, at the latest some seconds after that changed."""
    page.set_viewport_size(PHONE)
    for _ in range(50):
        if fits := page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            break
        page.wait_for_timeout(100)
    assert fits, page.url


@pytest.mark.usefixtures("warm_jobs")
def test_a_text_from_paste_to_rank(tab, files, model_folder):
    page = tab()
    upload(page, files["known"])
    page.get_by_role("link", name="Compare one text with these").click()
    page.get_by_label("The text", exact=True).fill(f"The cat sat.\n{NASTY} naïve café 🙂")
    page.get_by_label("Model").fill(str(model_folder))
    page.get_by_role("button", name="Read the text").click()
    page.wait_for_url("**/text/2*")
    page.reload()
    page.locator(".heat").wait_for()
    expect(page.locator(".warn")).to_contain_text("One text proves nothing.")
    assert page.locator(".heat").inner_text().replace("↵\n", "").startswith("The cat sat.</textarea><script>")
    expect(page.locator(".place svg.plot")).to_have_count(4)
    expect(page.locator(".place").first).to_contain_text(" of 25")
    assert page.title().endswith("· pretrace")  # nothing of the text was run
    check_width(page)
    page.goto("/text")  # both were remembered
    expect(page.get_by_label("Model")).to_have_value(str(model_folder))
    expect(page.get_by_role("link", name="The cat sat.")).to_have_count(1)


def test_a_collection_is_uploaded_stopped_resumed_and_its_result_read(tab, files, site, model_folder):
    page = tab()
    upload(page, files["texts"])
    expect(page.locator("dl.facts")).to_contain_text("25")
    page.get_by_label("Model", exact=True).fill(str(model_folder))
    page.get_by_label("Upload control documents").set_input_files(files["known"])
    page.wait_for_url("**controls=2*#tests")
    expect(page.locator(".tests li").first).to_contain_text("recommended")
    expect(page.get_by_label("Model", exact=True)).to_have_value(str(model_folder))
    page.get_by_label("Model", exact=True).fill("vllm:http://127.0.0.1:1")
    page.get_by_role("button", name="Start the test Which single texts").click()
    wrong = page.get_by_role("alert").filter(has_text="nothing answers at http://127.0.0.1:1")
    wrong.wait_for()
    expect(wrong.locator("xpath=..").get_by_label("Model", exact=True)).to_have_count(1)
    expect(page.locator("#model")).to_be_focused()
    page.get_by_label("Model", exact=True).fill(str(model_folder))
    page.get_by_role("button", name="Start the test Which single texts").click()
    page.wait_for_url("**/jobs/2*")
    page.locator(".state", has_text="is running").wait_for()

    other = tab(page.url.removeprefix(site.address))  # another tab stops it; the first one sees it
    other.get_by_role("button", name="Stop").click()
    page.locator(".state", has_text="was stopped").wait_for()
    page.get_by_role("button", name="Go on").click()
    page.locator(".state", has_text="is running").wait_for()
    page.reload()
    page.locator(".state", has_text="is running").wait_for()
    site.stop()  # the job goes on, and the page finds the next server
    page.get_by_text("The server does not answer.").wait_for()
    site.start()
    page.wait_for_url("**/results/*", timeout=6 * WAIT)  # it opens by itself, when all is read
    expect(page.get_by_text("The server does not answer.")).not_to_be_visible()
    other.close()
    expect(page.locator(".seal.sound")).to_have_text("✓ unchanged")
    page.get_by_role("link", name="Read the report").click()
    expect(page.locator("body")).to_contain_text("pretrace · flagging report")
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="flags.csv").click()
    assert download.value.path().read_text(encoding="utf-8").startswith('"id","group","score"')
    check_width(page)


@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("warm_jobs")
def test_every_start_button_leads_to_a_result(tab, site, marked, model_folder, reference_folder, monkeypatch):
    monkeypatch.setenv(INSTEAD, str(reference_folder))
    site.stop()
    site.settings["most_running"] = 2
    site.start()
    page = tab()
    upload(page, marked["texts"])
    expect(page.locator("#tests h3")).to_have_count(1)  # random strings in the texts
    page.get_by_label("Model", exact=True).fill(str(model_folder))
    page.get_by_label("An earlier checkpoint of the model").fill(str(reference_folder))
    page.get_by_label("Upload control documents").set_input_files(marked["known"])
    page.wait_for_url("**controls=2*#tests")
    for name in (
        "Random strings in the texts", "Control documents", "Which single texts", "An earlier checkpoint alone",
        "Control documents and an earlier checkpoint",
    ):  # fmt: skip
        heading = re.compile(rf"^\s*{name}(\s+recommended)?\s*$")
        expect(page.locator("#tests h3").filter(has_text=heading)).to_have_count(1)
    address = page.url
    number = tab(address).locator("#tests button[form=have]").count()
    assert number >= 7  # the plans among them
    begun = []
    for at in range(number):  # all are pressed before the first ends: a tab each
        opened = tab(address)
        opened.set_default_timeout(6 * WAIT)  # each is a whole test
        button = opened.locator("#tests button[form=have]").nth(at)
        plan = button.inner_text().startswith("Plan it first")
        button.click()
        opened.wait_for_url(re.compile("/(jobs|results)/"))
        begun.append((opened, plan))
    for opened, plan in begun:
        end = opened.get_by_role("button", name="Start it now") if plan else opened.locator(".seal.sound")
        words = re.compile("is done|without an answer|could not be done|was stopped")
        end.or_(opened.locator(".state", has_text=words)).first.wait_for()
        done = opened.locator(".state", has_text="is done").count()
        if done and not plan:  # over before its page was there
            end.or_(opened.get_by_role("link", name="The result", exact=True)).first.click()
            end.wait_for()
        assert end.count() == 1, opened.locator("main").inner_text()


def test_a_folder_is_chosen_and_a_drop_starts_an_upload(tab, tmp_path):
    (tmp_path / "drafts" / "in").mkdir(parents=True)
    for name, content in (("one.md", "One text."), ("in/two.txt", "Another text."), ("c.png", "-")):
        (tmp_path / "drafts" / name).write_text(content)
    page = tab()
    page.get_by_label("or a folder").set_input_files(tmp_path / "drafts")
    page.wait_for_url("**/collections/2*")
    expect(page.locator("h1")).to_have_text("drafts")
    expect(page.locator("dl.facts")).to_contain_text("2, from 2 files; 1 file that is no text was left out")
    page.goto("/collections")
    page.locator("form.drop").evaluate(DROP)
    page.wait_for_url("**/collections/2*")
    expect(page.locator("h1")).to_have_text("weather.txt")
    page.goto("/text")  # where a text is put into its field
    page.locator("form.drop").evaluate(DROP)
    # not wait_for_function: the page lets nothing be evaluated, a waiting test included
    expect(page.locator("#text")).to_have_value("It rained.\nThen it snowed.")
    expect(page.locator("#said")).to_have_text("weather.txt was chosen.")


def test_a_folder_that_is_dropped_is_read_at_any_depth(tab, tmp_path):
    """A real drop, as the browser gets it from a desktop: Chromium takes the paths and reads the folder itself."""
    (tmp_path / "letters" / "1999").mkdir(parents=True)
    for name in ("one.txt", "1999/two.md"):
        (tmp_path / "letters" / name).write_text(f"A letter: {name}.")
    page = tab("/collections")
    box = page.locator("form.drop").bounding_box()
    devtools = page.context.new_cdp_session(page)
    drop = {"items": [], "files": [str(tmp_path / "letters")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        devtools.send("Input.dispatchDragEvent", {"type": kind, **place, "data": drop})
    page.wait_for_url("**/collections/2*")
    expect(page.locator("h1")).to_have_text("letters")
    expect(page.locator("dl.facts")).to_contain_text("2, from 2 files")


def test_it_works_without_scripts(browser, site, files):
    context = browser.new_context(base_url=site.address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/collections")
    page.get_by_label("Upload texts").set_input_files(files["known"])
    page.get_by_role("button", name="Upload and look at it").click()
    expect(page.locator("dl.facts")).to_contain_text("25")
    page.goto("/text")
    page.get_by_label("Model").fill("m")
    page.get_by_role("button", name="Read the text").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no text")
    context.close()


def test_what_cannot_be_read_is_said_beside_the_form(tab, tmp_path):
    page = tab("/collections")
    wrong = tmp_path / "thesis.parquet"
    wrong.write_bytes(b"text")
    page.get_by_label("Upload texts").set_input_files(wrong)
    said = page.get_by_role("alert")
    said.wait_for()
    expect(said).to_contain_text("thesis.parquet is not a whole parquet file")
    expect(page.locator(".problem:focus")).to_have_count(1)  # a screen reader begins there
    page.goto("/text")
    page.get_by_label("The text", exact=True).fill("kept")
    page.get_by_label("Model").fill(" ")
    page.get_by_role("button", name="Read the text").click()
    page.get_by_role("alert").wait_for()
    expect(page.get_by_role("alert")).to_contain_text("No model is named")
    expect(page.locator("[aria-invalid=true]:focus")).to_have_count(1)
    expect(page.get_by_label("The text", exact=True)).to_have_value("kept")


def test_the_keyboard_is_enough_and_a_phone_is_wide_enough(tab, site):
    for name in ("summer", NASTY.replace("/", "")):
        run = run_of([[1.0], [2.0]], (None, None), corpus=name, scores=("loss",))
        save_run(run, site.workspace / "results" / f"of {name[:6]}")
    page = tab("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for path in ("/", "/text", "/collections", "/jobs", "/results"):
        page.goto(path)
        check_width(page)
        expect(page.locator("main")).to_have_count(1)
        expect(page.locator("h1")).to_have_count(1)
        nameless = "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')].filter("
        nameless += "one => !one.labels.length && !one.ariaLabel).length"
        assert page.evaluate(nameless) == 0
        seen = set()
        for _ in range(30):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.outerHTML"))
        used = "main :is(a, input:not([type=hidden]), select, button:enabled):visible"
        assert len(seen) >= page.locator(used).count()
