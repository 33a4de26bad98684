"""`pretrace advise`: told or asked what there is, say which test can be made, and what to type."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from pretrace.cli.answer import CANNOT_ANSWER, Answer, Plain
from pretrace.cli.streams import asks
from pretrace.corpora import Columns
from pretrace.registry import require
from pretrace.settings import Option, check_ranges, option
from pretrace.types import Situation
from pretrace.verdicts.advise import Advice, Advised, Names
from pretrace.verdicts.advise import advise as advised
from pretrace.verdicts.expected import COMPARING, chance, enough, expected_for, picture
from pretrace.verdicts.looking import Seen, look

_HAVE = "What you have"
_OFFERS = ("weights", "logprobs", "text")
_STOPPED = 130
_STATES = {
    "applies": "This can be made now:",
    "could": "This could be made:",
    "cannot": "This cannot be made with this model:",
}


def _number(help: str) -> Any:
    return option(None, help, panel=_HAVE, least=0, essential=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseSettings:
    """What the one who asks has; None where that was not said. ExpressionError for a number below 0."""

    documents: int | None = _number("Documents in question; counted where TEXTS is given.")
    unpublished: int | None = _number("Texts that are not yet published.")
    unseen: int | None = _number(
        "Control documents: texts of the same kind that the model cannot have seen, such as unpublished or later ones."
    )
    checkpoint: bool = option(
        False,
        "There is an earlier checkpoint of the model, or the base it was tuned from.",
        panel=_HAVE,
        essential=True,
    )
    rows: int | None = _number("Rows of a set that was published in random order.")
    items: int | None = _number("Multiple-choice items whose options stand in random order.")
    canaries: int | None = _number("Random strings, such as hashes and UUIDs, that stand in the texts.")
    access: str = option(
        "",
        "What the model offers: weights; logprobs (a server that gives log-probabilities of a prompt); or text "
        "alone. Weights unless named.",
        panel=_HAVE,
        essential=True,
    )

    parameters: float | None = option(
        None, "Parameters of the model, such as 8e9.", panel=_HAVE, least=1, essential=True
    )
    training_tokens: float | None = option(
        None, "Tokens that the model was trained on, such as 2e12.", panel=_HAVE, least=1
    )

    def __post_init__(self) -> None:
        require(
            self.access in ("", *_OFFERS), f"--access is one of {', '.join(_OFFERS)}, found {self.access}."
        )
        check_ranges(self)

    @property
    def told(self) -> dict[str, Any]:
        """What was said, by the name of the field."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value not in (None, "") and value is not False
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _AdviseInputs:
    """The file to look at, names for the commands, and how the answer is printed."""

    model: str = option("MODEL", "The model in question, for the commands.", essential=True)
    corpus: tuple[str, ...] = option(
        (),
        "Training data of the model that can be read: files, a folder or an address. What stands there is found by a "
        "search, without a test. May be given more than once.",
        path="in",
        essential=True,
    )
    json: bool = option(False, "Print the answer as JSON, and nothing else.", essential=True)
    columns: Columns = field(default_factory=Columns)


_TEXTS = Option(
    "The texts in question, to be looked at: how many there are, and whether a column holds answer "
    "options. Anything that `pretrace audit` takes.",
    metavar="TEXTS",
    path="in",
    essential=True,
)


def advise(
    settings: AdviseSettings, inputs: _AdviseInputs, texts: Annotated[str | None, _TEXTS] = None
) -> Answer:
    """Which test can I use? Say what you have: it prints which tests apply, what each assumes, how many documents it
    needs, and the command to type. At a terminal it asks. Exit code 4 where no verdict is possible."""
    told, seen = settings.told, Seen(Situation(), Names(), ())
    if texts is not None:
        seen = look(texts, inputs.columns)
    corpus = inputs.corpus
    asked = not told and texts is None and not corpus and not inputs.json and asks() and sys.stderr.isatty()
    if asked:
        told, corpus = _answers()
    found = advised(
        _with(seen.situation, told),
        texts if texts not in (None, "-") else Names().texts,
        model=inputs.model,
        names=seen.names,
    )
    informed = asked or bool(told) or texts is not None
    named = texts if texts not in (None, "-") else Names().texts
    search = _search(named or "", seen.names, corpus) if corpus else ""
    possible = found.possible or bool(search)
    return Answer(
        say=partial(_print, found, seen.said, informed=informed or bool(search), search=search),
        outcome="possible" if possible else "cannot answer",
        code=CANNOT_ANSWER if informed and not possible else 0,
        statement=SEARCH if search and not found.possible else _closing(found),
        own={**plain(found, seen.said), "search": search or None},
    )


SEARCH = "A search is possible: it is certain which texts stand in that corpus, and says nothing of data outside it."


def _search(texts: str, names: Names, corpus: tuple[str, ...]) -> str:
    """The command that searches training data for the texts."""
    sources = [part for one in corpus for part in ("--corpus", one)]
    return f"pretrace scan {shlex.join([texts, *names.columns, *sources])} --out FOUND"


def _with(seen: Situation, told: dict[str, Any]) -> Situation:
    """What was seen with what was told, which goes before it: other dates than those that were looked at, too."""
    if told.keys() & {"dated", "months"}:
        seen = replace(seen, testable=None)
    return replace(seen, **told)


def plain(advice: Advice, seen: tuple[str, ...]) -> dict[str, Any]:
    """The advice in plain values, for --json."""
    easiest = advice.easiest
    return {
        "possible": advice.possible,
        "easiest": easiest.choice.name if easiest else None,
        "situation": asdict(advice.situation),
        "seen": list(seen),
        "tests": [
            {
                "name": row.choice.name,
                "title": row.choice.title,
                "state": row.state,
                "missing": row.missing,
                "needs": row.choice.needs,
                "null": row.choice.kind,
                "assumes": row.choice.assumes,
                "accuses": row.choice.accuses,
                "needed": asdict(row.needed),
                "enough": enough(row.choice.name, advice.situation) if row.choice.accuses else None,
                "expected": asdict(found)
                if (found := expected_for(row.choice.name, advice.situation))
                else None,
                "commands": list(row.commands),
            }
            for row in advice.rows
        ],
    }


def _print(
    advice: Advice, seen: tuple[str, ...], console: Console, *, informed: bool, search: str = ""
) -> None:
    for sentence in seen:
        console.print(Plain(sentence), soft_wrap=True)
    if seen:
        console.print(Plain("Nobody can see from a file whether its order is random: say --rows N if it is."))
        console.print()
    if search:
        console.print(Plain("First, without a model:", style="bold"))
        console.print(Plain(f"  {SEARCH}"), soft_wrap=True)
        console.print(Plain(f"    $ {search}"), soft_wrap=True)
    state = ""
    for row in advice.rows:
        if informed and row.state != state:
            state = row.state
            console.print(Plain(_STATES[state], style="bold"))
        for line in lines(row, advice.situation, informed=informed):
            console.print(Plain(line), soft_wrap=True)
    drawn = next((found for name in COMPARING if (found := expected_for(name, advice.situation))), None)
    for line in picture(drawn) if drawn else ():
        console.print(Plain(line), soft_wrap=True)
    if not informed:
        console.print(
            Plain("Say what you have, such as --unseen 40: pretrace advise --help."), soft_wrap=True
        )
    else:
        console.print(Plain(_closing(advice), style="bold"), soft_wrap=True)


def lines(row: Advised, has: Situation, *, informed: bool) -> Iterator[str]:
    """A test as lines for a terminal."""
    choice = row.choice
    yield f"  {choice.title} ({choice.kind_words})"
    if row.missing and informed:
        yield f"    {'why' if row.state == 'cannot' else 'missing'}: {row.missing}"
    else:
        yield f"    needs: {choice.needs}"
    yield f"    {'assumes' if choice.accuses else 'note'}: {choice.assumes}"
    if choice.accuses:
        yield f"    for power 0.8: {enough(choice.name, has)}"
        if expected_for(choice.name, has):
            yield f"    chance: {chance(choice.name, has)}"
    if row.state != "cannot":
        for command in row.commands:
            yield f"    $ {command}"


def _closing(advice: Advice) -> str:
    """Whether a verdict is possible, and else what would make one possible most easily."""
    able = [row.choice for row in advice.rows if row.state == "applies"]
    if able and not any(choice.accuses for choice in able):
        return (
            "No test can accuse with this: what applies can end only with “nothing shown” or “inconclusive”."
        )
    if able:
        return f"A verdict is possible. The strongest test that applies: {able[0].title}."
    easiest = advice.easiest
    assert easiest is not None  # trigger sentences can be put into the next texts, whatever the model offers
    missing = easiest.missing
    return f"No verdict is possible with this. Most easily had: {easiest.choice.title}. Missing: {missing}."


_QUESTIONS = {
    "documents": "How many texts do you want to ask about?",
    "unseen": "How many texts of the same kind do you have that the model cannot have seen (unpublished, later)?",
    "unpublished": "How many texts do you have that are not yet published?",
    "rows": "If it is a data set in random order: how many rows?",
    "items": "If it has multiple-choice items with options in random order: how many items?",
    "canaries": "How many random strings, such as hashes or UUIDs, stand in the texts?",
}


def _answers() -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the one at the terminal has, and the training data that can be read, a question a line; leaves
    with the code of a stop at Ctrl-C or Ctrl-D."""
    try:
        typer.echo("Enter alone means none.", err=True)
        told: dict[str, Any] = {name: _asked(question) for name, question in _QUESTIONS.items()}
        earlier = "Is there an earlier checkpoint of the model, or the base it was tuned from?"
        told["checkpoint"] = typer.confirm(earlier, default=False, err=True)
        offers = "What does the model offer (weights, logprobs, text)? Enter alone means weights."
        told["access"] = typer.prompt(
            offers, default="weights", show_default=False, value_proc=_offer, err=True
        )
        public = (
            "Training data of the model that can be read (a file, folder or address)? Enter alone means none."
        )
        corpus = typer.prompt(public, default="", show_default=False, err=True).strip()
    except typer.Abort:
        raise typer.Exit(_STOPPED) from None
    return told, (corpus,) if corpus else ()


def _asked(question: str) -> int:
    answer: int = typer.prompt(question, default="0", show_default=False, value_proc=_count, err=True)
    return answer


def _count(written: str) -> int:
    if not written.strip().isdecimal():
        raise typer.BadParameter(f"a whole number such as 40 was wanted, found {written!r}")
    return int(written)


def _offer(written: str) -> str:
    if written.strip() not in _OFFERS:
        raise typer.BadParameter(f"one of {', '.join(_OFFERS)} was wanted, found {written!r}")
    return written.strip()
