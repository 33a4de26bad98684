"""The page as a visitor meets it: sizes, first answers, widths, and the way from a clone to an answer on own texts.

    python -m benchmarks.speed.page                                  # asks a tiny model; a browser is needed
    python -m benchmarks.speed.page --axe node_modules/axe-core/axe.min.js
    python -m benchmarks.speed.page --clone                          # from a clone of the last commit, as README says

With `--clone` it clones this repository, installs it into an environment of its own with `scripts/setup`, and at a
terminal types `pretrace ask` on forty files and forty known non-members, and Enter at its question. The page is then
that of the clone, too.

It starts `pretrace serve` on an empty workspace and drives Chromium. Every page is opened at 1280 and 390 px, light and
dark: what it sends (budget 200 kB), how long its first answer takes (budget 200 ms), whether it is wider than its
window, and, with `--axe`, what axe-core (not part of this repository) finds. The walk uploads a folder of forty texts
and one of forty known non-members, starts a flagging and waits until its result opens; the time of the model is that of
the job. `--pictures FOLDER` keeps a picture of every page.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.machine import commit, machine

RESULT = RESULTS / "page.json"
BUDGET_BYTES, BUDGET_SECONDS = 200_000, 0.2
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
WORDS = (
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "and",
    "railway",
    "reached",
    "two",
    "valleys",
    "where",
    "nothing",
    "was",
)
_SHOWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STARTED = re.compile(r"open at (http://\S+?)/ ")


@contextmanager
def served(python: Path, workspace: Path) -> Iterator[tuple[str, float]]:
    """The address of a page of its own, and the seconds until it could be opened."""
    begun = time.monotonic()
    command = [
        str(python),
        "-m",
        "pretrace",
        "serve",
        "--workspace",
        str(workspace),
        "--port",
        "0",
        "--no-browser",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = _STARTED.search(process.stdout.readline())
            assert found, "the page did not start"
            yield found[1], time.monotonic() - begun
        finally:
            process.terminate()


def own_texts(folder: Path) -> tuple[Path, Path]:
    """A folder with forty made-up texts, a file each, and one with forty others."""
    drawn = random.Random(5)
    made = []
    for name in ("mine", "known"):
        place = folder / name
        place.mkdir()
        for i in range(40):
            (place / f"{i:02}.txt").write_text(" ".join(drawn.choices(WORDS, k=60)), encoding="utf-8")
        made.append(place)
    return made[0], made[1]


def cloned(folder: Path, files: tuple[Path, Path], model: str) -> tuple[Path, dict[str, Any]]:
    """The Python of a fresh clone's environment, and the way there and on to an answer at a terminal: commands and
    keys, and the seconds of each; those behind "Start?" are the model's and the report's."""
    ask = f"pretrace ask {files[0].name} --model {model} --unseen {files[1].name}"
    steps: dict[str, float] = {}
    clone = folder / "pretrace"
    for step, place, command in (
        ("git clone", folder, ["git", "clone", "--quiet", str(RESULTS.parents[1]), str(clone)]),
        ("scripts/setup", clone, ["scripts/setup"]),
    ):
        begun = time.monotonic()
        subprocess.run(command, cwd=place, check=True)
        steps[step] = time.monotonic() - begun
    begun, said = time.monotonic(), ""
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        os.execv(clone / ".venv" / "bin" / "pretrace", ask.split())
    while piece := _read(terminal):
        said += piece
        if "Start?" in said and "Enter" not in steps:
            steps[ask], begun = time.monotonic() - begun, time.monotonic()
            steps["Enter"] = 0.0
            os.write(terminal, b"\n")
    steps["Enter"] = time.monotonic() - begun
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return clone / ".venv" / "bin" / "python", {
        "commands_and_keys": list(steps),
        "seconds": {step: round(seconds, 1) for step, seconds in steps.items()},
        "exit_code": code,
        "last_lines": [
            line.strip() for line in _SHOWN.sub("", said).replace("\r", "\n").split("\n") if line.strip()
        ][-2:],
    }


def _read(terminal: int) -> str:
    """What a terminal shows next; nothing once its command has ended."""
    try:
        return os.read(terminal, 65536).decode("utf-8", "replace")
    except OSError:
        return ""


def walk(page: Any, folders: tuple[Path, Path], model: str) -> dict[str, Any]:
    """From the open page to the answer: commands and clicks, fields that were filled, and seconds, those of the job
    apart."""
    begun, done, fields = time.monotonic(), ["pretrace serve"], []
    page.goto("/")
    page.get_by_label("or a folder").set_input_files(folders[0])
    done.append("choose the folder of texts")
    page.wait_for_url("**/collections/2*")
    page.get_by_label("Model", exact=True).fill(model)
    fields.append("the model")
    page.locator("#put-folder").set_input_files(folders[1])
    done.append("choose the folder of control documents")
    page.wait_for_url("**controls=*#tests")
    page.get_by_role("button", name="Start the test Which single texts").click()
    done.append("start")
    page.wait_for_url("**/jobs/2*")
    started = time.monotonic()
    page.wait_for_url("**/results/2*", timeout=600_000)  # it opens by itself
    ended = time.monotonic()
    return {
        "commands_and_clicks": done,
        "fields": fields,
        "seconds": time.monotonic() - begun,
        "seconds_of_the_job": ended - started,
        "answer": page.locator("dl.facts .outcome").first.inner_text(),
    }


def read_a_text(page: Any, model: str) -> str:
    """The page of a text that was read, ranked among the known non-members."""
    page.goto("/text")
    page.get_by_label("The text", exact=True).fill(" ".join(WORDS * 3))
    page.get_by_label("Model").fill(model)
    page.get_by_label("Known non-members").select_option(index=1)
    page.get_by_role("button", name="Read the text").click()
    page.locator("svg.strip").first.wait_for(timeout=600_000)
    return str(page.evaluate("location.pathname"))


def looked_at(browser: Any, address: str, path: str, axe: str, pictures: Path | None) -> list[dict[str, Any]]:
    """One page at each width, light and dark."""
    rows = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            context = browser.new_context(
                base_url=address,
                viewport={"width": width, "height": 900},
                color_scheme=scheme,
                bypass_csp=bool(axe),
            )
            page = context.new_page()
            sizes: list[int] = []
            page.on("requestfinished", lambda one, into=sizes: into.append(one.sizes()["responseBodySize"]))
            page.goto(path, wait_until="networkidle")
            first = page.evaluate(
                "() => { const [one] = performance.getEntriesByType('navigation'); return one.responseStart / 1000; }"
            )
            if pictures:
                name = re.sub(r"\d{8}-\d{6}-|-[0-9a-f]{6}\b|\W+", "_", path).strip("_") or "home"
                page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png", full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth")
            row = {
                "page": path,
                "width": width,
                "scheme": scheme,
                "bytes": sum(sizes),
                "seconds": first,
                "wide": wide,
            }
            if axe:
                page.evaluate(axe)
                found = page.evaluate("() => axe.run(document)")
                row["axe"] = [f"{one['id']}: {len(one['nodes'])}" for one in found["violations"]]
            rows.append(row)
            context.close()
    return rows


def main() -> None:
    """Write benchmarks/results/page.json."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of all pages")
    parser.add_argument("--clone", action="store_true", help="from a fresh clone, which takes some minutes")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
    axe = given.axe.read_text(encoding="utf-8") if given.axe else ""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    os.environ["PRETRACE_CACHE"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        files = own_texts(folder)
        python, way = cloned(folder, files, given.model) if given.clone else (Path(sys.executable), None)
        with served(python, folder / "workspace") as (address, seconds):
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            context = browser.new_context(base_url=address)
            tab = context.new_page()
            walked = walk(tab, files, given.model)
            text = read_a_text(tab, given.model)
            paths = ["/", "/text", "/collections", "/jobs", "/results", "/compare"]
            for room, before in (("texts", "/collections"), ("jobs", "/jobs"), ("results", "/results")):
                found = sorted(one.name for one in (folder / "workspace" / room).iterdir())
                newest = [name for name in found if "known" not in name and "score" not in name][-1]
                paths.append(f"{before}/{newest}")
                if room == "texts":
                    paths.append(f"{before}/{newest}/test/score")
                if room == "results":
                    paths.append(f"{before}/{newest}/report")
            paths += [text, f"/compare?one={newest}&other={newest}"]
            rows = [row for path in paths for row in looked_at(browser, address, path, axe, given.pictures)]
            browser.close()
    result = {
        "machine": machine(),
        "commit": commit(),
        "model": given.model,
        "from_a_clone": way,
        "axe": given.axe is not None,
        "seconds_until_the_page_is_open": seconds,
        "walk": walked,
        "budget": {"bytes": BUDGET_BYTES, "seconds": BUDGET_SECONDS},
        "largest_bytes": max(row["bytes"] for row in rows),
        "median_seconds": statistics.median(row["seconds"] for row in rows),
        "slowest_seconds": max(row["seconds"] for row in rows),
        "slower_than_the_budget": sum(row["seconds"] > BUDGET_SECONDS for row in rows),
        "too_wide": sorted({row["page"] for row in rows if row["wide"] > row["width"]}),
        "axe_found": sorted({f"{row['page']} {one}" for row in rows for one in row.get("axe", ())}),
        "pages": rows,
    }
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "pages"}, indent=1))


if __name__ == "__main__":
    main()
