"""What `pretrace audit --controls` answers by its defaults: `python -m benchmarks.audits.command --work FOLDER`.

For each domain and seed a small model is trained once through on known members (`benchmarks.audits.worlds`), and audits
are made with the command's own functions and settings: snippets of 64 tokens of the packaged model, about four a
document, with the model's own base as placebo and without. "null": suspect and control documents that the model was not
trained on. "member": suspect documents that it read once. The base, or without it the packaged SmolLM2, is the second
model, which must find nothing. The other kinds are nulls as people have them, 50 documents
against 50: control documents of which a share is of another domain, suspect documents 30% longer, the two halves of
the same documents, and one notice at the beginning of every document. Audits of one target share documents.

An audit that rejects is accused where no check withholds it. The check that deals documents out 200 times is left
out here, and how many controls can be left out is counted with 1,000 permutations in place of 10,000 (they cost most).
A cell, one target, is written when it is done; a killed run goes on. `--summary` writes
evidence/audit_command.json and the table in audit_command.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import RESULTS, write_results
from benchmarks.audits.innocents import counted, read
from benchmarks.audits.worlds import DOMAINS, MEMBERS, Worlds, joined
from benchmarks.machine import commit, machine
from benchmarks.texts import DATA
from pretrace import Models, open_model
from pretrace.backends import open_tokenizer
from pretrace.results.atomic import atomic_text
from pretrace.scoring.evidence import Traces, trace
from pretrace.statistics.permutation import controls_left_out
from pretrace.types import Backend, Corpus, Quantity
from pretrace.verdicts.audit import checks
from pretrace.verdicts.audit.audit import Audit, AuditBeside
from pretrace.verdicts.audit.checks import ALIKE, differ, gaps_between, widest_gap
from pretrace.verdicts.audit.data import DRAWS, PRETRACE, AuditData, AuditSettings, judge_values
from pretrace.verdicts.audit.snippets import compared, cut_alike
from pretrace.verdicts.frame import compare_seconds
from pretrace.verdicts.outcome import SecondAnswer, second_check
from pretrace.verdicts.register import LEAST_DRAWS

SIZES = (25, 50)
REDRAWS = 3
"""How often the documents of a target are dealt out anew."""
SHARES, LARGE = (0.05, 0.10, 0.15, 0.25), (0.35, 0.50)
NOTICE = (
    "If this is your first visit, be sure to check out the FAQ by clicking the link above. You may have to register "
    "before you can post: click the register link above to proceed. To start viewing messages, select the forum that "
    "you want to visit from the selection below. Opinions are those of their authors and not of this site, which is "
    "not responsible for them in any way whatsoever. All rights reserved. "
)
"""More than a snippet of 64 tokens."""
LEVEL, PARAMETERS = 0.05, 1_100_000
Row = dict[str, Any]


@dataclass(frozen=True)
class Cutter:
    """The packaged model's tokenizer in the place of the default generator, which only cuts the texts here."""

    tokens: Any
    name: str = "smollm2"
    fingerprint: str = "the tokenizer alone"
    facts: dict[str, Any] = field(default_factory=dict)
    known: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """The place of each token in the text."""
        if text not in self.known:
            self.known[text] = self.tokens.spans(text)
        return self.known[text]


@dataclass(frozen=True)
class Case:
    """An audit to be made: what it is, its suspect documents and its control documents."""

    kind: str
    size: int
    suspect: Corpus
    heldout: Corpus
    beside: str = ""


def cases(worlds: Worlds, domain: str, seed: int) -> Iterator[Case]:
    """The audits of one target."""
    members, others = worlds.members(domain, seed)
    rng = np.random.default_rng([seed, DOMAINS.index(domain), 11])

    def of(names: Sequence[str], called: str) -> Corpus:
        return worlds.corpus(domain, list(names), called=called)

    def dealt(names: Sequence[str]) -> list[str]:
        return [names[i] for i in rng.permutation(len(names))]

    away = dealt([other for other in DOMAINS if other != domain])
    for turn in range(REDRAWS):
        for size in SIZES:
            some, mine = dealt(others), dealt(members)
            if len(some) >= 2 * size:
                yield Case("null", size, of(some[:size], "suspect"), of(some[size : 2 * size], "controls"))
            if min(len(some), len(mine)) >= size:
                yield Case("member", size, of(mine[:size], "suspect"), of(some[:size], "controls"))
        some = dealt(others)
        suspect, controls = of(some[:50], "suspect"), some[50:100]
        strangers = sorted(worlds.evaluation(away[turn % 2]))[:13]
        for share in SHARES:
            number = round(share * 50)
            strange = worlds.corpus(away[turn % 2], dealt(strangers)[:number], called="controls")
            mixed = joined("controls", of(controls[number:], "controls"), strange)
            yield Case(f"{share:.0%} of controls from another domain", 50, suspect, mixed, away[turn % 2])
        more = sorted(worlds.evaluation(away[turn % 2]))
        more = [
            more[i]
            for i in np.random.default_rng([seed, DOMAINS.index(domain), 12, turn]).permutation(len(more))
        ]
        for share in LARGE:
            number = min(round(share * 50), len(more))
            strange = worlds.corpus(away[turn % 2], more[:number], called="controls")
            mixed = joined("controls", of(controls[number:], "controls"), strange)
            yield Case(f"{share:.0%} of controls from another domain", 50, suspect, mixed, away[turn % 2])
        if turn % 2:
            continue
        plain = of(controls, "controls")
        yield Case("suspects 30% longer", 50, suspect, _cut(plain, 1 / 1.3))
        yield Case("halves of the same documents", 50, _cut(suspect, 0.5), _cut(suspect, -0.5))
        yield Case("one notice before every text", 50, _headed(suspect), _headed(plain))


def _cut(corpus: Corpus, share: float) -> Corpus:
    """The beginning of each text, or with a share below 0 its end."""
    cut = [
        replace(
            text,
            text=text.text[: round(share * len(text.text))]
            if share > 0
            else text.text[round(share * len(text.text)) :],
        )
        for text in corpus.texts
    ]
    return replace(
        corpus,
        texts=tuple(
            replace(text, id=f"{text.id} {share:.2g}", group=f"{text.group} {share:.2g}") for text in cut
        ),
    )


def _headed(corpus: Corpus) -> Corpus:
    return replace(corpus, texts=tuple(replace(text, text=NOTICE + text.text) for text in corpus.texts))


class Bench:
    """Audits as the command makes them, in the work folder."""

    def __init__(self, work: Path, data: Path) -> None:
        os.environ["PRETRACE_CACHE"] = str(work / "cache")
        self.work, self.worlds = work, Worlds(work, data)
        self.cutter: Any = Cutter(open_tokenizer("smollm2"))
        self.packaged = open_model("smollm2")
        self.rows = work / "rows.jsonl"

    def done(self) -> set[tuple[str, int, str]]:
        """The kinds of audits of each target that are on file."""
        if not self.rows.is_file():
            return set()
        lines = self.rows.read_text(encoding="utf-8").splitlines()
        return {(row["domain"], row["seed"], row["kind"]) for row in map(json.loads, lines)}

    def cell(self, domain: str, seed: int) -> None:
        """Train a target, make its audits that are not on file, note them and delete it."""
        start, ready = time.monotonic(), self.done()
        made = [one for one in cases(self.worlds, domain, seed) if (domain, seed, one.kind) not in ready]
        if not made:
            return
        target = open_model(str(self.worlds.target(domain, seed)))
        base = open_model(str(self.worlds.base()))
        self._read(target, made, Quantity.LOGP | Quantity.MOMENTS)
        self._read(base, made, Quantity.LOGP)
        print(f"{domain} {seed}: read after {time.monotonic() - start:.0f} s", flush=True)
        found = []
        for case in made:
            for placebos in ((base,), ()):
                row = self._audited(case, target, placebos)
                found.append({"domain": domain, "seed": seed, **row})
        with self.rows.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in found))
        self.worlds.forget(domain, seed)
        print(f"{domain} {seed}: {len(found)} audits after {time.monotonic() - start:.0f} s", flush=True)

    def _read(self, model: Backend, made: Sequence[Case], want: Quantity) -> None:
        """Read all snippets at once, so that each audit finds what it asks for on file."""
        texts: dict[str, None] = {}
        for case in made:
            _, _, cuts = self._cut(case, ())
            texts |= dict.fromkeys(snippet.whole for one in cuts for snippet in one.snippets)
        with Traces(model.fingerprint) as store:
            trace(model, list(texts), want, store=store)

    def _cut(self, case: Case, placebos: tuple[Backend, ...]) -> tuple[Audit, int, Any]:
        stand_in: Any = self.cutter
        models = Models(stand_in, placebos=placebos)
        asked = Audit(corpus=case.suspect, models=models, heldout=case.heldout, generator=self.cutter)
        corpora = [corpus for corpus, _ in asked.named]
        cuts = cut_alike(corpora, self.cutter, asked.settings.snippets, seed=asked.seed)
        return asked, asked.seed, cuts

    def _audited(self, case: Case, target: Backend, placebos: tuple[Backend, ...]) -> Row:
        settings = AuditSettings()
        _, seed, cuts = self._cut(case, ())
        made = compared(cuts, settings.snippets, seed=seed)
        data = AuditData(made, Models(target), settings, placebos=placebos, seed=seed)
        answer = data.answer(PRETRACE)
        row: Row = {
            "kind": case.kind,
            "size": case.size,
            "beside": case.beside,
            "placebo": "own" if placebos else "none",
            "p": float(f"{answer.p:.4g}"),
            "effect": round(answer.standardised or 0.0, 3),
            "snippets": len(made[0]),
        }
        if answer.p > LEVEL:
            return row | {"accused": False, "failed": []}
        values = data.values
        left_out = controls_left_out(
            values.values, values.heldout_values, LEVEL, permutations=LEAST_DRAWS, seed=seed
        )
        looked = [
            checks.reverse_check(values, seed=seed),
            checks.spread_check(values, seed=seed),
            checks.mixture_check(left_out or 0, values),
            checks.kinds_check(data.sides, seed=data.seed, rejected=True),
            second_check(self._seconds(data, (*placebos, self.packaged)), LEVEL, does="", preferred=""),
        ]
        failed = [check.name for check in looked if check.status == "failed"]
        if failed:
            return row | {"accused": False, "failed": failed, "left_out": left_out}
        widest = widest_gap(gaps_between(cuts, settings, seed), ALIKE)
        assert widest is not None
        failed += ["gap"] if differ(widest, ALIKE) else []
        auc = round(widest.auc.value, 3)
        return row | {"accused": not failed, "failed": failed, "left_out": left_out, "auc": auc}

    @staticmethod
    def _seconds(data: AuditData, seconds: Sequence[Backend]) -> list[SecondAnswer]:
        numbers = {"target": data.values.numbers, **{one.name: data.alone(one).numbers for one in seconds}}
        found = judge_values(data.values, seed=data.seed)
        kind = AuditBeside if data.placebos else Audit
        return compare_seconds(kind, numbers, found, LEVEL, draws=DRAWS, seed=data.seed)


MIXED = "of controls from another domain"
NAMED = {
    "null": "of the same draw, nothing read",
    "member": "of the same draw, **the suspect documents read once**",
}
PAGE = RESULTS / "audit_command.md"
BEGIN, END = "<!-- command: written by benchmarks.audits.command -->\n", "<!-- end of command -->"


def counts(rows: Sequence[Row]) -> Row:
    """Of these audits how many there are, rejected and were accused, together and by domain."""
    domains = sorted({row["domain"] for row in rows})
    return {
        **counted(rows),
        "domains": {domain: counted([row for row in rows if row["domain"] == domain]) for domain in domains},
    }


def summary(work: Path) -> dict[str, Any]:
    """What all cells found, a row a kind, size and placebo; written to the results and into the pages."""
    made = read(work / "rows.jsonl")
    keys = sorted({(row["kind"], row["size"], row["placebo"]) for row in made})
    rows = [
        {
            "kind": kind,
            "documents": size,
            "placebo": placebo,
            **counts([r for r in made if (r["kind"], r["size"], r["placebo"]) == (kind, size, placebo)]),
        }
        for kind, size, placebo in keys
    ]
    targets = sorted({(row["domain"], row["seed"]) for row in made})
    assert made, "no cell is on file"
    content = {
        "machine": machine(),
        "commit": commit(),
        "level": LEVEL,
        "parameters": PARAMETERS,
        "members_of_a_target": MEMBERS,
        "targets": len(targets),
        "domains": sorted({domain for domain, _ in targets}),
        "snippets_a_document": round(
            float(np.mean([row["snippets"] / row["size"] for row in made if row["kind"] == "null"])), 2
        ),
        "rows": rows,
        "audits": made,
    }
    write_results(RESULTS / "audit_command.json", content)
    return content


def row_of(content: Mapping[str, Any], kind: str, size: int, placebo: str) -> Row:
    """The row of this kind, size and placebo."""
    return next(
        row
        for row in content["rows"]
        if (row["kind"], row["documents"], row["placebo"]) == (kind, size, placebo)
    )


def found_range(row: Row) -> tuple[float, float]:
    """The smallest and the largest share that was found (or accused) in a domain."""
    shares = [one["accused"] / one["runs"] for one in row["domains"].values()]
    return min(shares), max(shares)


def table(content: Mapping[str, Any]) -> str:
    """Return the table of the page."""
    heads = [f"{words}: {said}" for words in ("no placebo", "own base") for said in ("rejected", "accused")]
    lines = [
        f"| control documents | a side | audits | {' | '.join(heads)} |",
        f"|---|{'--:|' * (2 + len(heads))}",
    ]
    order = {kind: i for i, kind in enumerate(("null", "member"))}
    cells = {(row["kind"], row["documents"], row["placebo"]): row for row in content["rows"]}
    conditions = sorted(
        {key[:2] for key in cells}, key=lambda one: (order.get(one[0], 2), one[0].zfill(60), one[1])
    )
    for kind, size in conditions:
        none, own = (cells[kind, size, placebo] for placebo in ("none", "own"))
        if none["runs"] != own["runs"]:
            raise ValueError(f"{kind}: as many audits with a placebo as without are wanted")
        if MIXED in kind:
            continue
        shown = [str(none["rejected"]), _accused(none), str(own["rejected"]), _accused(own)]
        lines.append(f"| {NAMED.get(kind, kind)} | {size} | {own['runs']} | {' | '.join(shown)} |")
    mixed = {
        placebo: [row for row in content["rows"] if MIXED in row["kind"] and row["placebo"] == placebo]
        for placebo in ("none", "own")
    }
    runs = sum(row["runs"] for row in mixed["own"])
    sums = [sum(row[name] for row in some) for some in mixed.values() for name in ("rejected", "accused")]
    shares = sorted(int(row["kind"].partition("%")[0]) for row in mixed["own"])
    lines.append(f"| {shares[0]} to {shares[-1]}% {MIXED} | 50 | {runs} | {' | '.join(map(str, sums))} |")
    return "\n".join([*lines, ""])


def _accused(row: Row) -> str:
    """How many were accused, with the range over kinds of text where there were any."""
    low, high = found_range(row)
    return f"{row['accused']} ({low:.0%} to {high:.0%})" if row["accused"] else "0"


def page(content: Mapping[str, Any]) -> str:
    """Return the page of these figures with the table between its two marks."""
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return head + BEGIN + table(content) + END + rest.split(END, 1)[1]


def _locked(bench: Bench, domain: str, seed: int, lock: Path | None) -> None:
    """One cell, alone on the machine where a lock is named."""
    if lock is None:
        bench.cell(domain, seed)
        return
    import fcntl

    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        bench.cell(domain, seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--cells", type=int, default=len(DOMAINS))
    parser.add_argument("--lock", type=Path, default=None)
    parser.add_argument("--until", default="", help="no cell is begun after this time of day, as 19:35")
    parser.add_argument("--summary", action="store_true", help="write the results and the page, and stop")
    given = parser.parse_args()
    if given.summary:
        atomic_text(PAGE, page(summary(given.work)))
        raise SystemExit
    bench = Bench(given.work, given.data)
    for number in range(given.cells):
        seed, place = divmod(number, len(DOMAINS))
        if given.until and time.strftime("%H:%M") >= given.until:
            break
        _locked(bench, DOMAINS[place], seed, given.lock)
