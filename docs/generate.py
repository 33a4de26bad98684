"""Writes the table of tests in docs/audits.md from the list that `pretrace ask` goes by and from
evidence/designs.json, and renders the page of scores from their docstrings, parameters and needs
(`scripts/site` writes that page when it builds the site).

The tables of evidence/methods.md and docs/methods.md are made from evidence/methods.json,
evidence/dilution.md from dilution.json, those of scan.md from scan.json.

Run `python docs/generate.py` after adding or changing a score or a test, or after new measurements
(`python -m benchmarks.designs.table --needed src/pretrace/verdicts/needed.json`); a test compares the pages with what
this makes.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import RESULTS, read_results
from pretrace.cli.commands import places
from pretrace.rewrites import After, Disturbance, Neighbors, rewrites
from pretrace.scores import scores
from pretrace.types import Needs, Quantity, Recipe, View
from pretrace.verdicts.advise import UNMEASURED, OfferedTest, needed, offered_tests

AUDITS = Path(__file__).with_name("audits.md")
DESIGNS = RESULTS / "designs.json"
METHODS = Path(__file__).with_name("methods.md")
MEASURED = DESIGNS.with_name("methods.json")
BEGIN, END = "<!-- tests: written by docs/generate.py -->\n", "<!-- end of tests -->"

BY_METHOD = "<!-- methods: written by docs/generate.py -->\n", "<!-- end of methods -->"

EVERY = DESIGNS.with_name("innocents.md")
EVERY_METHOD = DESIGNS.with_name("methods.md")
DILUTION = DESIGNS.with_name("dilution.json")
BY_DILUTION = DESIGNS.with_name("dilution.md")
SMALL = 2e6
"""Models of fewer parameters are those of the first table of methods."""
SEARCH = DESIGNS.with_name("scan.md")
COSTS = RESULTS / "score_costs.json"
SEARCHED = RESULTS / "scan.json"
SCAN = "<!-- scan: written by docs/generate.py -->\n", "<!-- end of scan -->"

INTRO = """\
# Scores

Made from the docstrings in `src/pretrace/scores`.

A score is one number for one text. `--scores` takes a comma-separated list with parameters in brackets:
`"loss,zlib,min_k(k=0.1)"`. The expression is the name of the column.

**Higher means more likely a member**, for every score; where a paper has it the other way round, the sign is changed
here. Each score has its own scale: compare texts within one score.

**Notation.** `n` is the number of tokens the model predicted, `t_i` one of them, `logp_i` its log-probability. All
logarithms are natural. Logits are converted to float32 first, and a score sums over tokens in float64. Scores use the
log-probabilities of the text; other needs are listed.

**Start token.** By default a text is read as its tokenizer prepares it. Llama's tokenizer puts a start token in front,
so all tokens are predicted. Those of Pythia and SmolLM2 do not, so the first token is only context. `--model-args
start=always` gives exactly one start token, `start=never` none. Scores depend on it: do not compare runs that
differ in it. The paper of `dc_pdd` uses a start token.
"""

DIFFERENCES = """\
## Where this differs from the authors' code

Where a paper and its authors' code disagree, the score follows the paper. In addition to what the scores say above:

- `fsd(lowercase)`: the authors' code inverts the ratio of `lowercase`, so that higher means a non-member. The order of
  `fsd(lowercase)` can differ.
- `probe`: the model reads the text alone. The authors' code puts it into a prompt that asks whether the statement is
  correct, trains its classifier without a bias, and standardises the scored texts by their own mean and standard
  deviation. Here those of the fitted texts are used.
- `dc_pdd`: `pretrace count` counts whole texts without special tokens. The authors' code counts the first 1,024 tokens
  of each text, with a start token if the tokenizer adds one.
- `na_pdd`: the authors' notebook chooses layers by |S| (`by_absolute=True`); equation 9 takes S. Its cells for
  TinyLLaMA and OpenLLaMA pool by `'any'`. A text that activates no non-member neuron has an infinite score there.
- `wbc`, `surp`: the ten lengths, the 20% and the 2 nats are second-hand: the authors' code could not be read here. A
  reimplementation of `surp` has the same numbers, and gives -100 to a text without such a token.
- `recall`: the authors' code joins the shots without anything between them, and takes 12 by default; 7 is second-hand.
- `coverage`: the authors' code counts the words of the sample that are in the text, over the length of either or of
  both. Here the tokens of the text's end are counted.
- `learned`: instead of the token's rank it has the distance to the likeliest token.
- `codec`: the authors' description says "random samples from the same dataset"; one text before each, the same before
  all, is our choice.
- SynPrune (arXiv:2511.07033) is not offered: the paper's 47 conventions could not be read here.
"""

PAPERS = {
    "Yeom et al. 2018": "Privacy risk in machine learning: analyzing the connection to overfitting. CSF 2018.",
    "Carlini et al. 2021": "Extracting training data from large language models. USENIX Security 2021.",
    "Hayes et al. 2024": "Measuring memorization in language models via probabilistic extraction. arXiv:2410.19482.",
    "Shi et al. 2024": "Detecting pretraining data from large language models. ICLR 2024.",
    "Zhang et al. 2024b": "Min-K%++: improved baseline for detecting pre-training data from large language "
    "models. arXiv:2404.02936.",
    "Zhang et al. 2024d": "Pretraining data detection for large language models: a divergence-based calibration "
    "method. EMNLP 2024.",
    "Maini et al. 2024": "LLM dataset inference: did you train on my dataset? NeurIPS 2024.",
    "Mattern et al. 2023": "Membership inference attacks against language models via neighbourhood comparison. "
    "Findings of ACL 2023.",
    "Liu et al. 2024c": "Probing language models for pre-training data detection. ACL 2024.",
    "Tang et al. 2025": "NA-PDD. Identifying pre-training data in LLMs: a neuron activation-based detection framework.",
    "Kwak and Kim 2026": "Gap-K%: measuring top-1 prediction gap for detecting pretraining data. ACL 2026.",
    "Zawalski et al. 2025": "Detecting data contamination in LLMs via in-context learning. arXiv:2510.27055.",
    "Zhang and Wu 2024": "Adaptive pre-training data detection for large language models via surprising tokens. "
    "arXiv:2407.21248.",
    "Chen et al. 2026": "Window-based membership inference attacks against fine-tuned large language models. USENIX "
    "Security 2026.",
    "Hallinan et al. 2025": "The surprising effectiveness of membership inference with simple n-gram coverage. "
    "arXiv:2508.09603.",
    "Ilić et al. 2026b": "Learning the signature of memorization in autoregressive language models. arXiv:2604.03199.",
    "Ilić et al. 2026a": "Powerful training-free membership inference against autoregressive language models. "
    "arXiv:2601.12104.",
    "Xie et al. 2024": "ReCaLL: membership inference via relative conditional log-likelihoods. EMNLP 2024.",
    "Wang et al. 2025": "Con-ReCall: detecting pre-training data in LLMs via contrastive decoding. COLING 2025.",
    "FSD": "Zhang et al. 2025.",
    "Zhang et al. 2025": "FSD. Fine-tuning can help detect pretraining data from large language models. ICLR 2025.",
}
"""The papers that docstrings cite, by the words they cite them with."""

_SOURCE = re.compile(r"\s*\(([^()]*\b(?:19|20)\d\d[a-z]?[^()]*)\)\.$")
_TYPES = {float: "a number", int: "a whole number", str: "a text", bool: "True or False"}


def render() -> str:
    """Return the page of scores."""
    parts = [INTRO, _costs(), *map(_section, scores), DIFFERENCES, _papers()]
    return "\n".join(parts)


def _section(name: str) -> str:
    factory = scores.factory(name)
    docstring = inspect.getdoc(factory) or ""
    summary, *paragraphs = [
        part.strip() for part in docstring.partition(">>>")[0].split("\n\n") if part.strip()
    ]
    source = _SOURCE.search(summary)
    if source is None:
        raise ValueError(
            f"{name}: the first sentence of its docstring must end with the source, (Author year)."
        )
    lines = [f"## {name}", f"{_prose(summary[: source.start()])}."]
    lines += [_formula_or_prose(paragraph) for paragraph in paragraphs]
    needs = [f"Needs: {words}."] if (words := _needs(name)) else []
    facts = [*_parameters(factory), *needs, f"Source: {_prose(source[1])}."]
    return "\n\n".join(lines) + "\n\n" + "".join(f"- {fact}\n" for fact in facts)


def _formula_or_prose(paragraph: str) -> str:
    """A line that only says what something equals is a formula; anything else reads as prose."""
    if "\n" not in paragraph and " = " in paragraph and not paragraph.endswith("."):
        return f"```text\n{paragraph}\n```"
    return _prose(" ".join(paragraph.split()))


def _prose(text: str) -> str:
    """Text with the characters that Markdown would take for its own escaped, outside of `code`."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*<])", r"\\\1", p) for p in pieces)


def _parameters(factory: typing.Any) -> list[str]:
    """One line with all parameters; what one may be is said where its default does not show it."""
    if not dataclasses.is_dataclass(factory):  # fsd: its one argument is another score
        return [f"`{name}`: another score, such as `ppl`." for name in inspect.signature(factory).parameters]
    hints = typing.get_type_hints(factory)
    shown = []
    for field in dataclasses.fields(factory):
        plain = hints[field.name] in _TYPES
        shown.append(
            f"`{field.name}={field.default!r}`" + ("" if plain else f" ({_kind(hints[field.name])})")
        )
    return [f"Parameters: {', '.join(shown)}."] if shown else []


def _kind(hint: typing.Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(f"`{choice!r}`" for choice in typing.get_args(hint))
    choices = [choice for choice in typing.get_args(hint) if choice is not type(None)]
    if len(choices) == 1 and len(typing.get_args(hint)) == 2:
        return f"{_kind(choices[0])}, or None"
    return _TYPES.get(hint, str(hint))


def _needs(name: str) -> str:
    if not dataclasses.is_dataclass(scores.factory(name)):
        return "what that score needs, from the target and from the tuned target (`--tuned` or `--set-aside tuning`)"
    score = scores.make(name)
    words = [_view(view, quantity, paired=score.needs.paired) for view, quantity in _plain_first(score.needs)]
    if isinstance(score, Recipe):
        if score.reference:
            words.append("labelled reference texts (`--reference` or `--set-aside reference`)")
        else:
            words.append("token counts (`--counts`, made by `pretrace count`)")
    return "; ".join(filter(None, words))


def _plain_first(needs: Needs) -> list[tuple[View, Quantity]]:
    return sorted(needs.views.items(), key=lambda item: item[0] != View())


_INSIDE = {
    Quantity.NEURONS: "the feed-forward activations of the same pass",
    Quantity.HIDDEN: "the hidden states of the same pass",
    Quantity.CONTINUED: "what the model writes in the text's place, a pass a token and sample (weights here)",
}


def _view(view: View, quantity: Quantity, *, paired: bool = False) -> str:
    if view.model == "reference":
        if paired:
            return "the log-probabilities of the same tokens under a second model (`--reference-model`)"
        return "the text's log-probabilities under a second model (`--reference-model`)"
    if view.rewrite == "lower":
        return "a second pass, over the lower-cased text"
    rewrite = rewrites.make(view.rewrite)
    if isinstance(rewrite, Neighbors):
        return f"a pass over each of {rewrite.m} neighbours of the text (`--neighbors` says who makes them)"
    passes = {
        After: "a pass for each kind of known texts before the text, which are read once",
        Disturbance: "a second pass, over the disturbed text",
    }
    if type(rewrite) in passes:
        return passes[type(rewrite)]
    for one, said in _INSIDE.items():
        if one in quantity:
            return said
    over = []
    if Quantity.MOMENTS in quantity:
        over.append("mean and standard deviation over the vocabulary")
    if Quantity.PEAK in quantity:
        over.append("the log-probability of the likeliest token")
    return ", and ".join(over)


def _costs() -> str:
    """What the scores were measured to cost, from evidence/score_costs.json."""
    found = read_results(COSTS)
    ratios = sorted(found["ratio"].items(), key=lambda one: (one[1], one[0]))
    told = ", ".join(f"`{name}` {ratio:.2f}" for name, ratio in ratios)
    return (
        f"**Cost.** Processor time over that of `loss` alone, {found['texts']['number']} texts, {found['model']}, "
        f"`benchmarks.speed.score_costs`: {told}. Several scores of one pass share it.\n"
    )


def _papers() -> str:
    return "## Papers\n\n" + "".join(f"- {_prose(name)}: {_prose(title)}\n" for name, title in PAPERS.items())


METHODS_HEAD = """\
# Methods by copies and dilution: every figure

<!-- Made by docs/generate.py from evidence/methods.json. Do not edit by hand. -->

Every score and every test of a collection, on models whose training data are known. [Which method finds
most](../docs/methods.md) says how to read the tables.
"""


class Reached(typing.NamedTuple):
    """What a method reached: `value` and `never_saw` (a model that read nothing) are [value, low, high] of an AUC of
    documents or a share of tests that reject at 5%, as `what` says; None where unmeasured. `units` are those of a test,
    `passes` readings of a text, `dilution` how many times as much other text was read."""

    method: str
    what: str
    kind: str
    copies: int
    dilution: float | None
    place: str | None
    parameters: float | None
    units: int | None
    value: tuple[float, float, float]
    never_saw: tuple[float, float, float] | None
    passes: int | None
    source: str


@cache
def rows() -> tuple[Reached, ...]:
    """Read all that was measured: by what, copies and dilution, then the best first."""
    found = (
        Reached(**{**one, **{k: one[k] and tuple(one[k]) for k in ("value", "never_saw")}})
        for one in json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]
    )
    return tuple(
        sorted(found, key=lambda one: (one.what, one.copies, one.dilution or 0, -one.value[0], one.method))
    )


def figure(value: Sequence[float]) -> str:
    """Say a value with its interval."""
    middle, low, high = value
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def every_method() -> str:
    """Return the page with all figures of methods."""
    found = sorted(rows(), key=_order)
    spread = [one for one in found if one.source.startswith("dilution.json")]
    small = [one for one in spread if one.what == "AUC" and one.parameters and one.parameters < SMALL]
    larger = [one for one in spread if one.what == "AUC" and one not in small]
    tested = [one for one in found if one.what != "AUC"]
    known = (
        "dilution.json",
        "audit_command.json",
        "planted_domains.json",
        "Hubble",
        "designs_models.json",
        "innocents_recite.json",
    )
    others = [one for one in found if not one.source.startswith(known)]
    parts = [
        (
            "Scores by copies and dilution",
            "Models of 1.3 million parameters from scratch, PubMed abstracts of 96 tokens, spread over the training "
            "([dilution.json](dilution.json)). `10x, 4`: read four times, among ten times as much other text. Several "
            "seeds: the mean of their AUC and of the ends of their intervals. `learned` takes its classifier from a "
            "model of another seed.\n\n"
            + _pivot([one for one in small if one.place == "throughout"], _diluted),
        ),
        (
            "Newer scores beside `ref`",
            "Next to the same twin. A score beats `ref` if it is 0.03 or more ahead in five of eight cells; cells in "
            "which `ref` has more than 0.97 do not count.\n\n" + _against(),
        ),
        (
            "Where in the training",
            "The same, with the copies in one block.\n\n"
            + _pivot(
                [one for one in small if one.place != "throughout"], lambda one: f"{one.place}, {_diluted(one)}"
            ),
        ),
        (
            "Larger models",
            "The same as the first table; `3.3M`: million parameters.\n\n"
            + _pivot([one for one in larger if one.place == "throughout"], _sized),
        ),
        (
            "A pretrained model that reads the texts at the end",
            "SmolLM2 with 135 million parameters, trained further on 120 documents, once and four times, and on "
            "nothing else: mean over four domains of the Pile ([each domain](planted_domains.md)). The model before "
            "is the reference of `ref`.\n\n"
            + _pivot([one for one in found if one.source == "planted_domains.json"], lambda one: f"read {one.copies}x"),
        ),
        (
            "Audits",
            "The share for which p is at or below 5%, with 50 documents on each side, of the models of the first table "
            "and of larger ones.\n\n" + _pivot([one for one in tested if one.place == "throughout"], _sized),
        ),
        (
            "Other tests of collections",
            "The same, for models of 1.1 million parameters that read the units of a test last, and nothing after.\n\n"
            + _pivot(
                [one for one in tested if one.place == "end"], lambda one: f"read {one.copies}x", ("method", "units")
            ),
        ),
        (
            "Published figures",
            "Hubble (Wei et al. 2025, arXiv:2510.19811) put texts into training at random. `8B, 4`: 8 billion "
            "parameters, read four times. The interval is the range over three kinds of text. No score with a second "
            "model was measured there.\n\n" + published(),
        ),
        ("Added models", _pivot(others, _added)),
    ]  # fmt: skip
    parts.append(("Not in the table", _unlisted(found)))
    shown = (f"## {title}\n\n{body}" for title, body in parts if "\n| `" in body or "\n- " in body)
    return "\n".join([METHODS_HEAD, *shown])


SHORT = ("1x, 1", "100x, 1", "1000x, 1", "1x, 4", "100x, 4")
"""The cells of the table in docs/methods.md."""
BEST = ("min_k_plus_plus", "min_k", "ez", "ref", "wbc", "learned", "loss", "zlib")
"""The methods of that table."""


def methods() -> str:
    """Return the table of docs/methods.md: scores in a few cells."""
    small = [
        one
        for one in sorted(rows(), key=_order)
        if one.source.startswith("dilution.json") and one.what == "AUC" and one.place == "throughout"
        and (one.parameters or 0) < SMALL and _diluted(one) in SHORT and one.method in BEST
    ]  # fmt: skip
    return _pivot(small, _diluted)


def published() -> str:
    """Return the table of published figures by size and copies."""
    return _pivot(
        [one for one in sorted(rows(), key=_order) if one.source.startswith("Hubble")],
        lambda one: f"{(one.parameters or 0) / 1e9:.0f}B, {one.copies}",
    )


def _diluted(one: Reached) -> str:
    """Name the cell of a model by other text and copies."""
    return f"{one.dilution:g}x, {one.copies}"


def _order(one: Reached) -> tuple[float, ...]:
    """Columns stand by size, copies, other text, and place in the training."""
    places = ("throughout", "early", "middle", "late", "end")
    place = places.index(one.place) if one.place in places else len(places)
    size = 0 if (one.parameters or 0) < SMALL else one.parameters or 0
    return size, one.copies or 0, one.dilution or 0, place


def _added(one: Reached) -> str:
    """The cell of a model that somebody added, who may not have said what else it read."""
    beside = "" if one.dilution is None else f"{one.dilution:g}x, "
    return f"{one.kind}, {beside}{one.copies} ({one.source})"


def _sized(one: Reached) -> str:
    """The cell of a model, with its size where it is larger than those of the first table."""
    size = f"{(one.parameters or 0) / 1e6:.1f}M, " if (one.parameters or 0) >= SMALL else ""
    return f"{size}{one.dilution:g}x, {one.copies}"


def _unlisted(found: Sequence[Reached]) -> str:
    """The scores and tests that have no row, so that nobody takes their absence for a result."""
    listed = {one.method for one in found}
    bare = {name.partition("(")[0] for name in listed} | {name.partition(" ")[0] for name in listed}
    own = {"controls": "audit", "controls-placebo": "audit"}
    missing_scores = [f"`{name}`" for name in sorted(scores) if name not in bare]
    missing_tests = [f"`{one.name}`" for one in offered_tests() if own.get(one.name, one.name) not in bare]
    listed_scores = f"- `--scores`: {', '.join(missing_scores)}.\n" if missing_scores else ""
    return (
        "These were not measured by how often a text was read, next to a model that never saw it.\n\n"
        f"{listed_scores}"
        f"- Tests, by their names in `pretrace ask`: {', '.join(missing_tests)} "
        "([what is known of them](../docs/audits.md)).\n"
    )


def _against() -> str:
    """Return a table with a row a rival of the reference score."""
    rivals = json.loads(MEASURED.read_text(encoding="utf-8"))["against_ref"]
    lines = [
        "| score | beats `ref` | cells | ahead by 0.03 | behind by 0.03 | mean lead |\n|---|---|--:|--:|--:|--:|\n"
    ]
    for name, one in rivals.items():
        cells = one["cells_with_room"]
        verdict = ("yes" if one["wins"] else "no") if cells >= 8 else "too few cells"
        figures = (
            (cells, one["ahead_by_0.03"], one["behind_by_0.03"], f"{one['mean_lead']:+.3f}")
            if cells
            else (0, "", "", "")
        )
        lines.append(f"| `{name}` | {verdict} | {' | '.join(map(str, figures))} |\n")
    return "".join(lines)


def _pivot(
    found: Sequence[Reached], column: Callable[[Reached], str], over: tuple[str, ...] = ("method",)
) -> str:
    """A table of methods against cells, the best in the first cell at the top; the last columns hold the highest value
    of models that never saw the texts, and the passes."""
    cells: dict[tuple[typing.Any, ...], dict[str, list[Reached]]] = {}
    for one in found:
        cells.setdefault(tuple(getattr(one, name) for name in over), {}).setdefault(column(one), []).append(
            one
        )
    names = list(dict.fromkeys(map(column, found)))
    first = next(iter(names), "")
    ordered = sorted(cells.items(), key=lambda item: -_mean(item[1].get(first, []))[0])
    head = [*over, *names, "never saw, highest", "passes"]
    made = [f"| {' | '.join(head)} |\n|---|{'---|' * (len(head) - 1)}\n"]
    for key, mine in ordered:
        every = [one for some in mine.values() for one in some]
        unseen = [one.never_saw[0] for one in every if one.never_saw]
        said = [f"`{key[0]}`", *("" if part is None else f"{part:,}" for part in key[1:])]
        said += [figure(_mean(mine[name])).replace(" to ", "–") if name in mine else "" for name in names]
        said += [f"{max(unseen):.3f}" if unseen else "not measured", str(every[0].passes or "")]
        made.append(f"| {' | '.join(said)} |\n")
    return "".join(made)


def _mean(some: Sequence[Reached]) -> tuple[float, ...]:
    """The mean of the values and of the ends of their intervals; zeros of none."""
    return tuple(map(fmean, zip(*(one.value for one in some), strict=True))) if some else (0.0, 0.0, 0.0)


def tests() -> str:
    """Return the table of tests: needs, kind, innocents rejected and accused, documents for power 0.8."""
    head = (
        "| test | what it needs | exact or conditional | rejected | accused | power 0.8, one copy | four copies |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(map(_test, offered_tests()))


def innocents() -> str:
    """A row a test of the innocents that were tried, from evidence/designs.json; `every_innocent` has all."""
    rows = [row for row in read_results(DESIGNS)["rows"] if row["runs"]]
    head = "| test | how | kinds | accused | accused, worst kind |\n|---|---|--:|---|---|\n"
    tried = dict.fromkeys((row["test"], row["how"]) for row in rows)
    lines = [_tried([row for row in rows if (row["test"], row["how"]) == one]) for one in tried]
    return f"{head}{''.join(lines)}"


def _tried(rows: list[dict[str, typing.Any]]) -> str:
    """All kinds of one test together, and the kind with the largest share of accusations."""
    told = [row for row in rows if _share(row, "accused") != "not measured"]
    worst = max(told, key=lambda row: row["accused"] / row["runs"], default=None)
    named = "none of any kind" if worst is None or not worst["accused"] else ""
    cells = (
        rows[0]["test"],
        rows[0]["how"],
        f"{len(rows):,}",
        _share(_sum(told), "accused"),
        named or f"{_share(worst, 'accused')}: {worst['kind'] if worst else ''}",
    )
    return f"| {' | '.join(cells)} |\n"


def _sum(rows: list[dict[str, typing.Any]]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in ("accused", "runs")} if rows else {}


def every_innocent() -> str:
    """The page with every kind of innocents, and of members, from evidence/designs.json."""
    found = read_results(DESIGNS)
    head = "| test | kind | how | rejected | accused | accused before |\n|---|---|---|---|---|---|\n"
    rows = "".join(map(_innocent, (row for row in found["rows"] if row["runs"])))
    power = "\nOf texts that the model did read:\n\n"
    power += "| test | kind | how | found | found before |\n|---|---|---|---|---|\n"
    read = "".join(map(_member, (row for row in found["rows"] if row["members"])))
    sources = "".join(f"- `{one['file']}`: commit {one['commit']}.{_note(one)}\n" for one in found["sources"])
    return (
        f"{EVERY_INTRO}\n{innocents()}\nEvery kind:\n\n{head}{rows}{power}{read}\nMeasured on:\n\n{sources}"
    )


EVERY_INTRO = """\
# Innocents of each kind

<!-- Made by docs/generate.py from designs.json. Do not edit by hand. -->

What each test said of texts that the model had not read ([how](../docs/audits.md#innocents-of-each-kind)). First all
kinds of a test together:
"""


def _innocent(row: dict[str, typing.Any]) -> str:
    before = _share(row["before"], "accused")
    cells = (row["test"], row["kind"], row["how"], _share(row, "rejected"), _share(row, "accused"), before)
    return f"| {' | '.join(cells)} |\n"


def _member(row: dict[str, typing.Any]) -> str:
    before = row["before"] or {}
    was = _share(before, "found" if "found" in before else "accused")
    return f"| {row['test']} | {row['members']['kind']} | {row['how']} | {_share(row['members'], 'found')} | {was} |\n"


def _share(row: dict[str, typing.Any] | None, name: str) -> str:
    if not row or row.get(name) is None or not row.get("runs"):
        return "not measured"
    return f"{row[name]:,} of {row['runs']:,} ({row[name] / row['runs']:.1%})"


def searched() -> str:
    """Return the tables of what was measured of a scan, from evidence/scan.json."""
    parts = read_results(SEARCHED)["parts"]
    lines = "".join(f"| {what} | {shown} |\n" for what, shown in _scan_figures(parts))
    tables = [f"| what | measured |\n|---|--:|\n{lines}", _scan_speeds(parts), _by_copies(parts["copies"])]
    return "\n".join(tables)


def _scan_figures(parts: dict[str, typing.Any]) -> list[tuple[str, str]]:
    recall, kills = parts["recall"], parts["kills"]
    low, high = recall["bytes"]
    planted = f"planted runs of {low} to {high} bytes, with case, white space and line ends changed"
    return [
        (f"{planted}: missed", f"{recall['missed']:,} of {recall['planted']:,}"),
        ("false among the runs that were reported", f"{recall['false']:,} of {recall['runs']:,}"),
        (
            "scans killed at different moments that gave the same tables after a restart",
            f"{kills['equal']:,} of {kills['scans']:,}",
        ),
        ("peak memory with the larger corpus, over that with 1 GB", f"{parts['memory']['ratio']:.2f}"),
        ("speed of two workers on Ray, over that of one", f"{parts['ray']['ratio']}"),
    ]


def _scan_speeds(parts: dict[str, typing.Any]) -> str:
    """Return the MB/s by format and number of texts, and those of other programs."""
    speeds: dict[str, dict[int, float]] = {}
    others = {"grep": "`grep -F -f`, elapsed", "aho": "pyahocorasick, elapsed"}
    for name, one in parts.items():
        kind, _, rest = name.partition("-")
        speed = one.get("processor MB/s") if kind == "speed" else one.get("MB/s") if kind in others else None
        if speed is not None:
            speeds.setdefault(others.get(kind) or rest.split("-")[0], {})[one["texts"]] = speed
    counts = sorted({texts for row in speeds.values() for texts in row})
    head = f"| MB/s | {' | '.join(f'{texts:,} texts' for texts in counts)} |\n|---|{'--:|' * len(counts)}\n"
    return head + "".join(
        f"| {name} | {' | '.join(f'{row[n]:.0f}' if n in row else '' for n in counts)} |\n"
        for name, row in speeds.items()
    )


def _by_copies(one: dict[str, typing.Any]) -> str:
    counts = list(next(iter(one["AUC by copies"].values())))
    head = f"| AUC | {' | '.join('1 copy' if n == '1' else f'{n} copies' for n in counts)} |\n"
    head += f"|---|{'--:|' * len(counts)}\n"
    lines = "".join(
        f"| `{score}` | {' | '.join('{:.2f} ({:.2f} to {:.2f})'.format(*found[n]) for n in counts)} |\n"
        for score, found in one["AUC by copies"].items()
    )
    return f"{head}{lines}"


DILUTION_HEAD = """\
# Audits by copies and dilution

<!-- Made by docs/generate.py from dilution.json. Do not edit by hand. -->

[The audit](../docs/audit.md#how-many-documents-it-takes), with 50 documents on each side, on small models that were
trained from scratch (`python -m benchmarks.audits.dilution`). A law in copies, dilution and size gives the AUC of
`min_k_plus_plus`, and the AUC gives the power.

## What the planner predicted

Each cell (size, dilution, copies, place) without its own runs:
"""
FOUND_HEAD = """\
## What was found

The share of audits with p at or below 5%. Models have 1.3 million parameters and the texts are spread over the
training, unless the table says otherwise. The twin read the same other text in the same order from the same first
weights. No placebo of a user is as close.
"""


def by_dilution() -> str:
    """Return the page of audits by copies and dilution."""
    return "\n".join((DILUTION_HEAD, foreseen(), FOUND_HEAD, found_by_dilution()))


def foreseen() -> str:
    """Return a table of what the planner predicted of small models, each cell without its own runs."""
    found = read_results(DILUTION)
    held, planner = found["law"]["min_k_plus_plus"], found["planner"]
    law, given, places = planner["from_law"], planner["from_auc"], planner["places_together"]
    lines = [
        "| predicted | in the range | within 0.15 of the measured value |",
        "|---|--:|--:|",
        f"| AUC of a cell | {held['cells_in_interval']} of {held['cells']} | |",
        f"| power of a cell | {law['in_interval']} of {law['cells_and_sizes']} | {law['within_0.15']} of "
        f"{law['cells_and_sizes']} |",
        f"| power, all places in the training together | {places['in_interval']} of {places['cells_and_sizes']} | "
        f"{places['within_0.15']} of {places['cells_and_sizes']} |",
        f"| power, from the measured AUC | | {given['within_0.15']} of {given['cells_and_sizes']} |",
    ]
    if later := planner.get("later"):
        lines += [
            f"| AUC of later runs | {later['aucs_in_interval']} of {later['runs']} | |",
            f"| power of later runs | {later['in_interval']} of {later['cells_and_sizes']} | |",
        ]
    missing = textwrap.fill(f"Not run: {_not_run(found['runs'])}.", 138)
    return "\n".join(lines) + f"\n\n{missing}\n"


def found_by_dilution() -> str:
    """How many collections the audit finds, by copies and other text, by place and by size of the model."""
    runs = read_results(DILUTION)["runs"]
    copies = sorted({run["copies"] for run in runs})
    head = " | ".join(f"read {one}x" for one in copies)
    head = f"| other text | {head} | {' | '.join(f'with a twin, read {one}x' for one in copies)} |\n"
    head += f"|---|{'--:|' * 2 * len(copies)}\n"
    lines = [
        f"| {_times(dilution)} | "
        + " | ".join(_power(runs, how, copies=one, dilution=dilution) for how in HOWS for one in copies)
        + " |\n"
        for dilution in sorted({run["dilution"] for run in runs})
    ]
    blocks = "".join(
        f"| {_times(dilution)} | "
        + " | ".join(
            _power(runs, HOWS[0], copies=1, dilution=dilution, place=place)
            for place in ("early", "middle", "late")
        )
        + " |\n"
        for dilution in sorted({run["dilution"] for run in runs if run["place"] != "throughout"})
    )
    sizes = sorted({run["size"] for run in runs} - {1})
    larger = " | ".join(_power(runs, HOWS[0], copies=1, dilution=1, size=size) for size in sizes)
    return (
        f"{head}{''.join(lines)}\n"
        f"| one block, read 1x, no twin | early | middle | late |\n|---|--:|--:|--:|\n{blocks}\n"
        f"| larger models, read 1x, no twin | {' | '.join(f'{size} million parameters' for size in sizes)} |\n"
        f"|---|{'--:|' * len(sizes)}\n| as much | {larger} |\n"
    )


HOWS = ("without_placebo", "with_placebo")


def _times(dilution: float) -> str:
    return "as much" if dilution == 1 else f"{dilution:,} times as much"


def _power(runs: Sequence[dict[str, typing.Any]], how: str, **cell: typing.Any) -> str:
    """The share of audits with 50 documents a side that reject, the mean of the seeds, with their number."""
    wanted = {"size": 1, "place": "throughout", **cell}
    some = [run["audit"][how]["50"] for run in runs if all(run[name] == one for name, one in wanted.items())]
    seeds = f" ({len(some)} seeds)" if len(some) > 1 else ""
    return f"{fmean(some):.0%}{seeds}" if some else "not run"


def _not_run(runs: Sequence[dict[str, typing.Any]]) -> str:
    """What of the plan no model was trained for: by copies and dilution, by place, and by size."""
    said = ["64 readings"]
    for times in (10, 100, 1000):
        done = {run["copies"] for run in runs if run["dilution"] == times and run["place"] == "throughout"}
        missing = [str(copies) for copies in (1, 4, 16) if copies not in done]
        if missing:
            said.append(f"{' and '.join(missing)} readings among {_times(times)}")
    for name, some in (
        ("one block", [run for run in runs if run["place"] != "throughout"]),
        ("models above 1.3 million parameters", [run for run in runs if run["size"] > 1]),
    ):
        most = max((run["dilution"] for run in some), default=1)
        if most < 1000:
            said.append(f"{name} among more than {_times(most)}")
    return "; ".join(said)


def _note(source: dict[str, typing.Any]) -> str:
    return f" {source['note']}" if "note" in source else ""


def with_tests(page: str, table: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with the table between its two markers; ValueError where they are missing."""
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page has no {marks[0].strip()} or no {marks[1]}")
    return f"{before}{begin}\n{table}\n{end}{after}"


def _test(choice: OfferedTest) -> str:
    found = needed()[choice.name]
    power = (found.documents(1), found.documents(4)) if choice.accuses else ("accuses nobody",) * 2
    name = f"{choice.title} ({_called(choice)})"
    counts = map(_counted, (found.rejected, found.accused))
    return f"| {' | '.join((name, choice.needs, choice.kind_words, *counts, *power))} |\n"


def _counted(written: str | None) -> str:
    """Counts in words: "3/2000 (a kind)" as "3 of 2,000 (a kind)"."""
    if written is None:
        return UNMEASURED
    counts, bracket, kind = written.partition(" (")
    return f"{' of '.join(f'{int(one):,}' for one in counts.split('/'))}{bracket}{kind}"


def _called(choice: OfferedTest) -> str:
    """The commands of a test, by their names."""
    names = [
        next(words for words in places() if command.startswith(f"pretrace {words} "))
        for command in choice.commands
    ]
    return ", ".join(dict.fromkeys(f"`pretrace {name}`" for name in names))


if __name__ == "__main__":
    whole = with_tests(AUDITS.read_text(encoding="utf-8"), tests())
    AUDITS.write_text(whole, encoding="utf-8")
    EVERY.write_text(every_innocent(), encoding="utf-8")
    EVERY_METHOD.write_text(every_method(), encoding="utf-8")
    whole = with_tests(METHODS.read_text(encoding="utf-8"), methods(), BY_METHOD)
    METHODS.write_text(whole, encoding="utf-8")
    BY_DILUTION.write_text(by_dilution(), encoding="utf-8")
    page = SEARCH.read_text(encoding="utf-8")
    SEARCH.write_text(with_tests(page, searched(), SCAN), encoding="utf-8")
