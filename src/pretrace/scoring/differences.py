"""The settings in which runs differ, and whether their numbers can still be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pretrace.types import Difference, Run

_SHORT = 12


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is held against each other: `read` gives its value, "" where none was recorded. Only runs of the same model,
    the same corpus or the same texts are compared where `within` says so."""

    name: str
    read: Callable[[Run], str]
    within: Literal["all", "corpus", "texts", "model"]
    compares: bool
    words: str


def facts_of(run: Run, *path: str) -> Mapping[str, Any]:
    """What the run recorded under these keys; nothing where that is no mapping."""
    found: Any = run.settings
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def differences(runs: Sequence[Run]) -> tuple[Difference, ...]:
    """The settings in which runs, numbered from 1, differ: those that forbid a comparison first."""
    found = [one for setting in _SETTINGS for one in _differing(setting, runs)]
    found += _parameters(runs)
    return tuple(sorted(found, key=lambda one: one.compares))


def _differing(setting: _Setting, runs: Sequence[Run]) -> list[Difference]:
    scopes: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for number, run in enumerate(runs, 1):
        value = setting.read(run)
        if value:
            scopes.setdefault(_scope(setting, run), {}).setdefault(value, []).append(number)
    return [
        Difference(
            f"{setting.name} of {scope[0]}" if scope else setting.name,
            _numbered(values),
            setting.compares,
            setting.words,
        )
        for scope, values in scopes.items()
        if len(values) > 1
    ]


def _scope(setting: _Setting, run: Run) -> tuple[str, ...]:
    if setting.within == "all":
        return ()
    if setting.within == "model":
        return (str(_target(run).get("name") or "the model"),)
    return (run.corpus,) if setting.within == "corpus" else (run.corpus, _texts(run))


def _parameters(runs: Sequence[Run]) -> list[Difference]:
    """Scores of one name with different parameters: they are different scores."""
    families: dict[str, dict[tuple[str, ...], list[int]]] = {}
    for number, run in enumerate(runs, 1):
        written: dict[str, list[str]] = {}
        for score in run.scores:
            written.setdefault(score.partition("(")[0], []).append(score)
        for family, own in written.items():
            families.setdefault(family, {}).setdefault(tuple(sorted(own)), []).append(number)
    words = "Other parameters make another score: only what is written alike stands in one table."
    return [
        Difference(
            f"parameters of {family}",
            _numbered({", ".join(own): numbers for own, numbers in values.items()}),
            bool(set.intersection(*map(set, values))),
            words,
        )
        for family, values in families.items()
        if len(values) > 1
    ]


def _numbered(values: Mapping[str, Sequence[int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((value, tuple(numbers)) for value, numbers in values.items())


def _target(run: Run) -> Mapping[str, Any]:
    return facts_of(run, "models", "target")


def _texts(run: Run) -> str:
    return str(facts_of(run, "texts").get("sha256") or "")


def _scored(run: Run) -> str:
    return f"{run.whole.texts if run.whole else len(run.ids):,}"


def _start(run: Run) -> str:
    prefix = _target(run).get("prefix")
    if not isinstance(prefix, list | tuple):
        return ""
    return "a start token before each text" if prefix else "no start token"


def _windows(run: Run) -> str:
    found = run.settings.get("windows")
    return "" if found is None else "windows of long texts" if found else "one row a text"


def _cut(run: Run) -> str:
    longest = _target(run).get("max_tokens")
    if not (run.whole.cut_texts if run.whole else run.cut.any()):
        return "no text was cut"
    return f"some were cut to {longest:,} tokens" if isinstance(longest, int) else "some were cut"


def _reference(run: Run) -> str:
    found = facts_of(run, "models", "reference")
    return " ".join(str(found[key])[:60] for key in ("name", "revision") if found.get(key))


def _counts(run: Run) -> str:
    found = facts_of(run, "counts")
    return f"{found.get('source')}, {found.get('tokens'):,} tokens" if found.get("tokens") else ""


def _adapter(run: Run) -> str:
    found = facts_of(run, "adapter", "method")
    return str(found.get("expression") or "")


def _recorded(*path: str, short: bool = False) -> Callable[[Run], str]:
    """What reads a plain value at this path; a hash by its beginning alone."""

    def read(run: Run) -> str:
        found = facts_of(run, *path[:-1]).get(path[-1])
        return "" if found is None else str(found)[:_SHORT] if short else str(found)

    return read


_SETTINGS = (
    _Setting(
        "texts", lambda run: _texts(run)[:_SHORT], "corpus", False,
        "Different texts bear one name: they stand in columns of their own, and their numbers do not compare.",
    ),
    _Setting(
        "start token", _start, "all", False,
        "After a start token the first token of a text is predicted too: scores with and without one do not compare.",
    ),
    _Setting(
        "windows", _windows, "all", False,
        "A row is a window of a text in one run and a whole text in the other: their numbers do not compare.",
    ),
    _Setting(
        "weights", _recorded("models", "target", "weights", short=True), "model", True,
        "Different weights bear one name: they are different models, in rows of their own.",
    ),
    _Setting(
        "revision", _recorded("models", "target", "revision"), "model", True,
        "Revisions are different models, in rows of their own.",
    ),
    _Setting(
        "reference model", _reference, "all", False,
        "A score that uses the reference model (ref) does not compare between different ones.",
    ),
    _Setting(
        "token counts", _counts, "all", False,
        "dc_pdd does not compare between different token counts.",
    ),
    _Setting(
        "tuning", _adapter, "all", False,
        "fsd(...) does not compare between differently tuned copies.",
    ),
    _Setting(
        "placebo", _recorded("models", "placebo", "name"), "all", True,
        "Leads over different placebos do not compare.",
    ),
    _Setting(
        "number of texts", _scored, "texts", True,
        "Not the same number of the same texts was scored: some were set aside or skipped.",
    ),
    _Setting(
        "cut texts", _cut, "all", True,
        "A text that is longer than a model reads lost its end there: not all scores rest on the same tokens.",
    ),
    _Setting(
        "number format", _recorded("models", "target", "dtype"), "all", True,
        "Scores move slightly with the precision of the numbers.",
    ),
    _Setting(
        "seed", _recorded("seed"), "all", True,
        "Intervals, and what is set aside, rest on other draws.",
    ),
    _Setting(
        "pretrace", _recorded("software", "pretrace"), "all", True,
        "A later version may compute a score differently; its changelog says so.",
    ),
)  # fmt: skip
