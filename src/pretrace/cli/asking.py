"""`pretrace ask`: one way in. Look at what there is, say what can be answered and how likely, ask, run, end in a
sentence. Without a model it lists the tests and what each takes.

It is the plan of a command, and the command: what it runs it prints, so that it can be run again.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pretrace.backends import check_model
from pretrace.backends.naming import called, split_revision
from pretrace.cli import asks, confirm, note, quiet, say
from pretrace.cli.auditing import audit, make_audit, open_audit
from pretrace.cli.commands import CANNOT_ANSWER, Reply, arguments_of, find_function, output_option
from pretrace.cli.telling import closing
from pretrace.corpora import open_corpus
from pretrace.corpora.opening import Source, operand
from pretrace.errors import ExpressionError, ShortTextsError
from pretrace.plugins import find_plugin
from pretrace.registry import find_test
from pretrace.results.atomic import check_writable
from pretrace.results.wording import duration
from pretrace.results.wording import say as sentence
from pretrace.runs import AUDIT, VERDICTS
from pretrace.settings import RUN, option
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Corpus, Situation
from pretrace.verdicts.advise import (
    Advice,
    Advised,
    Seen,
    advise,
    as_words,
    chance,
    documents_needed,
    enough,
    expected_for,
    foresee,
    look,
    situate,
)
from pretrace.verdicts.audit.audit import Audit
from pretrace.verdicts.audit.data import AuditSettings
from pretrace.verdicts.settings import input_option

_SHORTER = (32, 16)
"""Tokens of a snippet where too few texts are as long as the audit's own snippets."""
_RUN_BY_ITSELF = ("controls-placebo", "controls", "canaries", "recite", "placebo")
"""The tests that need no more than what `ask` is given, the first that applies is made; the others need a word of the
owner, such as how an order came about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AskInputs:
    """What there is beside the texts, and where the answer goes."""

    model: str | None = input_option(
        None,
        "The model in question: a hub id, a model folder, a .gguf file, smollm2 (packaged), or a server.",
    )
    controls: str | None = input_option(
        None,
        "Control documents: texts of the same kind and time that the model cannot have seen, such as unpublished ones.",
    )
    placebo: str | None = input_option(
        None, "A model that never saw the texts: an earlier checkpoint of the model in question, or its base."
    )
    corpus: tuple[str, ...] = input_option(
        (),
        "Training data that can be read: files, a folder or an address, searched for the texts. May be given more than "
        "once.",
    )
    plan: bool = option(False, "Say what can be answered, with how many documents, and stop.", essential=True)
    yes: bool = option(False, "Start without asking.", essential=True)
    out: Path | None = output_option(
        None, "Folder for the answers; TEXTS-answer in this folder unless given.", RUN
    )


@dataclass(frozen=True, slots=True)
class _AskStep:
    """A command that answers: its `name`, its `options` in the order in which they are typed,
    what it finds out, the test with what it assumes, how likely it finds a single reading, with a picture of documents
    needed, the time it takes ("" where nobody knows), and the audit that was `planned`."""

    name: str
    options: Mapping[str, Any]
    question: str
    test: str
    chance: Sequence[str]
    time: str = ""
    planned: Audit | None = None

    def lines(self) -> tuple[str, ...]:
        """The step for people."""
        time = (f"Time: {self.time}",) if self.time else ()
        likely, *picture = self.chance
        return f"Question: {self.question}", f"Test: {self.test}", f"Chance: {likely}", *picture, *time

    def said(self, place: Path) -> str:
        """The command as it is typed, with the folder of its answer in `place`."""
        texts, *options = self._given(place).items()
        return shlex.join(["pretrace", *self.name.split(), operand(str(texts[1])), *as_words(dict(options))])

    def _given(self, place: Path) -> dict[str, Any]:
        return {**self.options, "out": place / self.name.split()[-1]}

    def run(self, place: Path, seen: Seen) -> Reply:
        """Call the command; texts that were read are not read again."""
        note(f"runs {self.said(place)}")
        with redirect_stdout(sys.stderr):
            function = find_function(self.name)
            asked = arguments_of(function, self._given(place))
            if self.planned is not None:
                return make_audit(self.planned, place / self.name, asked["given"])
            if asked["source"].columns == seen.columns:
                asked["source"] = replace(asked["source"], given=seen.corpus)
            reply: Reply = function(**asked)
            return reply


def ask(source: Source, inputs: _AskInputs) -> Reply:
    """Was this used? Looks at what you have, says which test can answer and how likely, asks, runs it, and ends
    with one sentence and a report; without --model it lists the tests and what each takes. Exit codes: 3 found or
    consistent with training, 0 not, 4 no answer."""
    place = _check_places(source.texts, inputs)
    source = source.with_text_column(note)
    seen = look(source.texts, source.columns)
    for model in filter(None, (inputs.model, inputs.placebo)):
        check_model(split_revision(model)[0] or inputs.model or "")
    controls = open_corpus(inputs.controls, source.columns.of_another) if inputs.controls else None
    advice = _advised(source, inputs, seen, controls)
    if inputs.model is None and not inputs.corpus:
        return _listed(advice, seen)
    steps, cannot = _steps(source, inputs, seen, controls, advice)
    told = [*seen.said[: None if steps else 1], *(line for step in steps for line in step.lines()), *cannot]
    if not steps:
        return Reply(told, outcome="cannot answer", code=CANNOT_ANSWER, statement=cannot[0])
    commands = [step.said(place) for step in steps]
    if inputs.plan:
        told += [f"$ {command}" for command in commands]
        return Reply(told, outcome="plan", statement=steps[0].test, own={"commands": commands})
    if not quiet():
        for line in told:
            say(line)
    if asks() and sys.stderr.isatty() and not inputs.yes and not confirm("Start?", default=True):
        own = {"commands": commands}
        return Reply(["Not started."], outcome="not started", code=CANNOT_ANSWER, own=own)
    return _answer([(step.name, step.run(place, seen)) for step in steps], commands, cannot)


def _check_places(named: str, inputs: _AskInputs) -> Path:
    """Where the answers go; a PretraceError for texts that can be read once alone, and for what is in the way there."""
    for one in map(Path, filter(None, (named, inputs.controls))):
        if str(one) == "-" or (one.exists() and not one.is_file() and not one.is_dir()):
            raise ExpressionError("give texts as a file or a folder: they are read more than once.")
    texts = Path(named)
    stem = (texts.name if texts.is_dir() else texts.name.partition(".")[0]) or texts.resolve().name
    place = inputs.out or Path(f"{stem}-answer")
    kinds = {"scan": VERDICTS.of("scan")} if inputs.corpus else {}
    if inputs.model is not None:
        kinds |= {"audit": AUDIT} | {one: VERDICTS.of(one) for one in ("canaries", "recite")}
    for name, kind in kinds.items() if not inputs.plan else ():
        check_writable(place / name, kind)
    return place


def _steps(
    source: Source, inputs: _AskInputs, seen: Seen, controls: Corpus | None, advice: Advice
) -> tuple[list[_AskStep], list[str]]:
    steps, cannot = [], []
    if inputs.corpus:
        steps.append(_scan(source, inputs, seen))
    if inputs.model is not None:
        able = {row.choice.name: row for row in advice.rows if row.state == "applies"}
        if "recite" in able and not find_test("recite").readable(seen.corpus, controls):
            del able["recite"]
        chosen = next((able[name] for name in _RUN_BY_ITSELF if name in able), None)
        found = None if chosen is None else _step(source, inputs, seen, controls, chosen)
        if isinstance(found, _AskStep):
            steps.append(found)
        else:
            cannot += found or _missing(advice)
    return steps, cannot


def _advised(source: Source, inputs: _AskInputs, seen: Seen, controls: Corpus | None) -> Advice:
    unseen = len({text.document for text in controls.texts}) if controls else 0
    checkpoint = inputs.placebo is not None
    has = situate(seen.situation, inputs.model or "", unseen=unseen, checkpoint=checkpoint)
    given, earlier = inputs.controls or seen.names.controls, inputs.placebo or seen.names.earlier
    names = replace(seen.names, controls=given, earlier=earlier)
    return advise(has, source.texts, model=inputs.model or "MODEL", names=names)


def _listed(advice: Advice, seen: Seen) -> Reply:
    """Every test with what it takes; exit code 4 where none could answer with what there is."""
    closing = (
        "A verdict is possible: name the model with --model." if advice.possible else _missing(advice)[0]
    )
    return Reply(
        [*seen.said, *_list_tests(advice), closing],
        outcome="possible" if advice.possible else "cannot answer",
        code=0 if advice.possible else CANNOT_ANSWER,
        statement=closing,
        own={"possible": advice.possible, "seen": list(seen.said), "tests": list(_plain(advice))},
    )


def _list_tests(advice: Advice) -> Iterator[str]:
    state, has = "", advice.situation
    for row in advice.rows:
        choice = row.choice
        if row.state != state:
            state = row.state
            yield sentence(f"ask.{state}")
        yield f"  {choice.title} ({choice.kind_words})"
        if row.missing:
            yield f"    {'why' if row.state == 'cannot' else 'missing'}: {row.missing}"
        yield f"    {'assumes' if choice.accuses else 'note'}: {choice.assumes}"
        if choice.accuses:
            yield f"    for power 0.8: {enough(choice.name, has)}"
        if row.state != "cannot":
            yield from (f"    $ {command}" for command in row.commands)


def _plain(advice: Advice) -> Iterator[dict[str, Any]]:
    for row in advice.rows:
        choice, found = row.choice, expected_for(row.choice.name, advice.situation)
        yield {
            **{name: getattr(choice, name) for name in ("name", "title", "needs", "assumes")},
            **{name: getattr(row, name) for name in ("state", "missing", "commands")},
            "enough": enough(choice.name, advice.situation) if choice.accuses else None,
            "expected": asdict(found) if found else None,
        }


def _missing(advice: Advice) -> list[str]:
    easiest = advice.easiest
    assert easiest is not None  # trigger sentences can be put into the next texts, whatever the model offers
    one = easiest.choice
    numbers: dict[str, Any] = {"title": one.title, "missing": easiest.missing, "needs": one.needs}
    numbers |= {"least": FEW_DOCUMENTS, "enough": documents_needed(advice.situation)}
    needed = ("controls", "give") if "control documents" in easiest.missing else ("needs",)
    return [sentence(f"ask.{kind}", **numbers) for kind in ("easiest", *needed, "search", "mark")]


def _step(
    source: Source, inputs: _AskInputs, seen: Seen, controls: Corpus | None, row: Advised
) -> _AskStep | list[str]:
    """The step of a test, or what is said where its plan has no design."""
    has, name = seen.situation, row.choice.name
    question = f"was {called(inputs.model or '')} trained on {Path(source.texts).name}?"
    test = f"{row.choice.title}. It assumes: {row.choice.assumes}"
    options: dict[str, Any] = {"texts": source.texts, **seen.options}
    if inputs.controls and name != "canaries":
        options["controls"] = inputs.controls
    options["model"] = inputs.model
    other = name in ("canaries", "recite")
    if other and " --access text" in row.commands[0]:
        options["access"] = "text"
    if inputs.placebo:
        options["placebo"] = (inputs.placebo,)
    if other:
        own = (has, has.canaries) if name == "canaries" else (Situation(), has.documents)
        command = "mark canaries" if name == "canaries" else name
        return _AskStep(command, options, question, test, [chance(name, *own)])
    if not row.choice.accuses:  # an audit without control documents
        options["power"] = True
    planned = _planned(seen.corpus, controls, options)
    plan = planned.plan
    if plan.design is None:
        return [plan.why, *(f"What would help: {cure}" for cure in plan.cures)]
    if planned.settings.snippets.tokens != AuditSettings().snippets.tokens:
        options["snippets"] = {"tokens": planned.settings.snippets.tokens}
    took = "" if plan.seconds is None else f"about {duration(max(1, round(plan.seconds)))}, a guess."
    likely = (
        tuple(foresee("controls", plan.situation)) if row.choice.accuses else [sentence("ask.accuses_nobody")]
    )
    return _AskStep("audit", options, question, test, likely, took, planned)


def _planned(texts: Corpus, controls: Corpus | None, options: Mapping[str, Any]) -> Audit:
    """Open an audit with these options, with shorter snippets where too few texts are long."""
    asked = arguments_of(audit, options)
    planned = open_audit(texts, controls, asked["target"], asked["inputs"], asked["settings"])
    usual = planned.settings
    for tokens in (usual.snippets.tokens, *_SHORTER):
        settings = replace(usual, snippets=replace(usual.snippets, tokens=tokens))
        planned = replace(planned, settings=settings)
        with suppress(ShortTextsError):
            _ = planned.plan
            break
    return planned


def _scan(source: Source, inputs: _AskInputs, seen: Seen) -> _AskStep:
    found, cost = find_plugin("scan.command").foresee(seen.corpus, inputs.corpus)
    controls = {"controls": inputs.controls} if inputs.controls else {}
    return _AskStep(
        "scan",
        {"texts": source.texts, **seen.options, "corpus": inputs.corpus, **controls},
        f"does {Path(source.texts).name} stand in {' '.join(Path(one).name for one in inputs.corpus)}?",
        "Search. It assumes nothing; it says nothing of data that are not in this corpus.",
        [found],
        cost,
    )


def _answer(found: Sequence[tuple[str, Reply]], commands: Sequence[str], cannot: Sequence[str]) -> Reply:
    """One sentence and one report for each command, and what had no answer: without it nothing is cleared."""
    replies = [reply for _, reply in found]
    codes = [one.code for one in replies]
    code = 3 if 3 in codes else CANNOT_ANSWER if CANNOT_ANSWER in codes or cannot else 0
    last = next((one for one in replies if one.code == code), replies[0])
    said = list[str]()
    for one in replies:
        said += [one.statement, *([f"Report: {one.report}"] if one.report else [])]
        said += closing(one.verdict) if one.code == CANNOT_ANSWER and one.verdict is not None else ()
    answers = [reply.document(name) for name, reply in found]
    return Reply(
        [*said, *cannot],
        outcome=last.outcome if last.code == code else "cannot answer",
        code=code,
        statement=last.statement,
        folder=last.folder,
        report=last.report,
        own={"commands": list(commands), "answers": answers, "cannot": list(cannot)},
    )
