"""What 10^6 and 10^8 texts cost: measured rates times arithmetic, as the tables in evidence/scale.md.

`python -m benchmarks.scale.costs` writes the tables anew from the files in evidence that they name: hours of
one machine at the rate measured on it. A file that is not there has no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import RESULTS, read_results
from benchmarks.scale.texts import OUTSIDE

PAGE = RESULTS / "scale.md"
TOKENS = 500
"""Tokens of a text in the table."""


class Row(NamedTuple):
    """One line: what was measured on what, in which file, its rate in words, and seconds a text of `TOKENS`."""

    what: str
    machine: str
    file: str
    rate: str
    seconds: float


def rows() -> Iterator[Row]:
    """The lines of the table, from the files that are there."""
    if scale := _read("scale.json"):
        state = list(scale.values())[-1]
        timed = [row for row in state["rows"] if row["command"] == "score" and OUTSIDE in row]
        micro = max(timed, key=lambda row: row["texts"])[OUTSIDE]
        yield Row(
            "all but the model, texts of 12 tokens",
            "one core of " + _machine(state["machine"]),
            "scale.json",
            f"{micro:.0f} µs a text",
            micro / 1e6,
        )
    if speed := _read("speed.json"):
        for dtype in ("bfloat16", "float32"):
            rate = speed[dtype]["tokens_per_s"]
            yield _by_rate(f"SmolLM2-135M, {dtype}", _machine(speed["machine"]), "speed.json", rate)
    if served := _read("vllm.json"):
        rate = sorted(served["tokens_a_second"]["server"])[0]
        yield _by_rate("SmolLM2-135M, vLLM on the processor", _machine(served["machine"]), "vllm.json", rate)
    gpu: dict[str, Any] = _read("gpu.json") or {"parts": {}}
    for name, part in gpu["parts"].items():
        if rate := part.get("tokens_per_s"):
            what = name.replace("smollm2_", "SmolLM2-135M, ")
            yield _by_rate(what, gpu["machine"]["gpu"], "gpu.json", rate)


def table() -> str:
    """The lines as Markdown."""
    lines = [
        f"| what | on | rate, file | 10⁶ texts of {TOKENS} tokens | 10⁸ texts |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.what} | {row.machine} | {row.rate} (`{row.file}`) | {_hours(10**6 * row.seconds)} | "
        f"{_hours(10**8 * row.seconds)} |"
        for row in rows()
    ]
    return "\n".join(lines)


def _by_rate(what: str, machine: str, file: str, rate: float) -> Row:
    return Row(what, machine, file, f"{rate:,.0f} tokens a second", TOKENS / rate)


def _read(name: str) -> dict[str, Any] | None:
    path = RESULTS / name
    found: dict[str, Any] | None = read_results(path) if path.exists() else None
    return found


def _machine(found: dict[str, Any]) -> str:
    return f"{found['cores']} cores, {str(found['cpu']).replace('(R)', '')}"


def _hours(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 600
        else f"{seconds / 3600:,.1f} h"
        if seconds < 36e4
        else f"{seconds / 3600:,.0f} h"
    )


def sizes() -> str:
    """Peak memory by command and number of texts, and microseconds a text beside the forward pass, as Markdown."""
    found = _read("scale.json")
    if not found:
        return "Not measured yet."
    state = list(found.values())[-1]
    numbers = sorted({row["texts"] for row in state["rows"]})
    head = [f"{number:,} texts" for number in numbers]
    lines = [
        f"| peak memory, MB | {' | '.join(head)} | times the first | µs a text, without the model |",
        "|---" * (len(head) + 3) + "|",
    ]
    for command in dict.fromkeys(row["command"] for row in state["rows"]):
        rows = {row["texts"]: row for row in state["rows"] if row["command"] == command}
        peaks = [rows[number]["peak_mb"] if number in rows else None for number in numbers]
        known = [peak for peak in peaks if peak is not None]
        cells = " | ".join("" if peak is None else f"{peak:,.0f}" for peak in peaks)
        timed = [f"{row[OUTSIDE]:.0f} of {row['texts']:,}" for row in rows.values() if OUTSIDE in row]
        lines.append(f"| `{command}` | {cells} | {known[-1] / known[0]:.2f} | {', '.join(timed)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, made in (("costs", table()), ("sizes", sizes())):
        begin, end = (
            f"<!-- {name}: written by python -m benchmarks.scale.costs -->",
            f"<!-- end of {name} -->",
        )
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{made}\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
