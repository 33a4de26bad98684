"""Accuracy on items that a model seems to have seen, beside that on the others, from `lm_eval --log_samples`.

`flag` says which items are suspect. It withholds its answer where a control says that the two sets differ by more than
training, and then there are no two sides.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment

from pretrace.corpora.opening import every_row
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.wording import fill, say, sentences_of
from pretrace.scoring.evidence import Progress
from pretrace.scoring.plan import Models
from pretrace.settings import TEXTS, Option, option
from pretrace.statistics.documents import means, score_difference, score_interval
from pretrace.types import Corpus, Doubles, Estimate, Outcome, Situation, Table, Text, Verdict
from pretrace.verdicts.flag.flag import flag
from pretrace.verdicts.flag.planning import FlagSettings

_NAME = re.compile(r"samples_(.+)_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.?\d*)\.jsonl")
_AGAIN = "run the evaluation again with lm-eval 0.4.5 or later, --log_samples and --output_path"
_LOCAL = ("hf", "hf-auto", "huggingface")
Part = Literal["item", "question", "prompt"]


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of a task: its document, the `contexts` and `continuations` of its requests in order (a continuation is
    "" where the model wrote the answer itself), the target as the log has it, and the figure of each metric."""

    id: str
    doc: Mapping[str, Any]
    hash: str
    contexts: tuple[str, ...]
    continuations: tuple[str, ...]
    target: str
    figures: Mapping[str, float]

    @property
    def _right(self) -> int | None:
        """The place of the right answer among the requests; None where the log does not tell."""
        if len(self.contexts) == 1:
            return 0
        written: object = self.target
        with suppress(ValueError, SyntaxError):
            written = ast.literal_eval(self.target)
        first = written[0] if isinstance(written, list) and written else written
        if isinstance(first, int) and 0 <= first < len(self.contexts):
            return first
        answers, told = [one.strip() for one in self.continuations], str(first).strip()
        return answers.index(told) if told in answers else None


@dataclass(frozen=True, slots=True)
class _SampleLog:
    """The items of one task, its settings and `results` ({} for none); `filter` is that of the figures."""

    task: str
    path: Path
    items: tuple[_Item, ...]
    filter: str
    config: Mapping[str, Any]
    results: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def _shots(self) -> int:
        """How many examples stood in front of each item."""
        return int(self.config.get("num_fewshot") or 0)

    @property
    def model(self) -> str:
        """The evaluated model as `--model` takes it; TextsError where the log does not say, or had it elsewhere."""
        args, source = self._arguments, self.results.get("model_source")
        if source in _LOCAL and args.get("pretrained") and not {"peft", "delta", "gguf_file"} & args.keys():
            return str(args["pretrained"])
        made = f"was made with {source!r}" if source else "does not say with which model it was made"
        raise TextsError(f"{self.path.name} {made}: name the model with --model.")

    @property
    def revision(self) -> str | None:
        """The revision of that model on the hub, None where none was named."""
        found = self._arguments.get("revision")
        return str(found) if found and found != "main" else None

    def _column(self, metric: str, ids: Sequence[str]) -> Doubles:
        """The figures of these items by a metric, [items]."""
        found = {item.id: item.figures[metric] for item in self.items}
        return np.array([found[name] for name in ids])

    def corpus(self, part: Part = "item", group: str = "") -> Corpus:
        """A text an item: what was asked, and the right answer where the log has one. `part` "item" leaves out what
        stands in front of the item, "question" the answer too, "prompt" keeps all; `group` is a field that joins
        items."""
        texts, seen = [], Counter[str]()
        for item in self.items:
            if group and group not in item.doc:
                raise TextsError(
                    say("samples.unread.no_field", id=item.id, group=group, columns=", ".join(item.doc))
                )
            asked, how = self._asked(item, part)
            answer, told = ("", "") if part == "question" else self._answer(item)
            seen.update(filter(None, (how, told)))
            texts.append(Text(item.id, asked + answer, group=str(item.doc[group]) if group else item.hash))
        notes = (say(f"samples.notes.{name}", count=n, number=len(texts)) for name, n in seen.items())
        return Corpus(self.task, tuple(texts), str(self.path), (*self.notes, *notes))

    def _asked(self, item: _Item, part: Part) -> tuple[str, str]:
        prompt = item.contexts[item._right or 0]
        own = "" if part == "prompt" else self._rendered(item)
        if own and own in prompt:
            return own, ""
        if part == "prompt" or not (self._shots or self.config.get("description")):
            return prompt, ""
        return prompt.rpartition(str(self.config.get("fewshot_delimiter") or "\n\n"))[2], "cut"

    def _rendered(self, item: _Item) -> str:
        template = self.config.get("doc_to_text")
        if not isinstance(template, str) or not template:
            return ""
        if template in item.doc:
            return str(item.doc[template])
        try:  # a log comes from strangers, so a template runs in a sandbox
            return SandboxedEnvironment(keep_trailing_newline=True).from_string(template).render(**item.doc)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError):
            return ""

    def _answer(self, item: _Item) -> tuple[str, str]:
        """The right answer as the model would have read it, and what there is to say of that."""
        if any(item.continuations):
            return ("", "bare") if item._right is None else (item.continuations[item._right], "")
        if self.config.get("output_type") == "loglikelihood_rolling":
            return "", ""
        return str(self.config.get("target_delimiter", " ")) + item.target, ""

    @property
    def _arguments(self) -> dict[str, Any]:
        args = self.results.get("config", {}).get("model_args") or {}
        if isinstance(args, str):
            return dict(part.split("=", 1) for part in args.split(",") if "=" in part)
        return dict(args)


def is_log(path: str) -> bool:
    """Whether a path names samples of lm-evaluation-harness, or a folder with some."""
    place = Path(path)
    return bool(_NAME.fullmatch(place.name)) or (place.is_dir() and any(place.rglob("samples_*.jsonl")))


def read_log(path: str, *, task: str | None = None, filter: str | None = None) -> _SampleLog:
    """The latest log of one task in a file or folder. TextsError for none, several tasks, an older format, and a prompt
    that is not the one whose hash stands beside it."""
    found = _files(Path(path))
    tasks = sorted({name for name, _, _ in found})
    chosen = task or tasks[0]
    if chosen not in tasks:
        raise TextsError(say("samples.unread.no_task", path=path, tasks=", ".join(tasks), task=task))
    if task is None and len(tasks) > 1:
        raise TextsError(f"{path} has samples of {', '.join(tasks)}: name one of them with --log task.")
    of_task = sorted((date, file) for name, date, file in found if name == chosen)
    date, file = of_task[-1]
    notes = [f"{file.name} is the latest of {len(of_task)} logs of {chosen}."] if len(of_task) > 1 else []
    results = _results(file.parent, date)
    rows = list(_rows(file))
    if not rows:
        raise TextsError(f"{file.name} is empty: {_AGAIN}.")
    filters = list(dict.fromkeys(str(row.get("filter", "none")) for row in rows))
    named = filter or filters[0]
    if named not in filters:
        raise TextsError(f"{file.name} has no filter {named!r}; it has {', '.join(filters)}: --log filter.")
    if len(filters) > 1:
        notes.append(f"Answers were read with {', '.join(filters)}; the figures are those of {named}.")
    items = tuple(_item(row, file, chosen) for row in rows if str(row.get("filter", "none")) == named)
    config = results.get("configs", {}).get(chosen, {})
    return _SampleLog(chosen, file, items, named, config, results, tuple(notes))


def _files(place: Path) -> list[tuple[str, str, Path]]:
    """Task, date and path of each file of samples; a file of another name is a task by its name."""
    if place.is_file():
        if place.suffix == ".json":
            raise TextsError(f"{place.name} holds results and no samples: {_AGAIN}.")
        named = _NAME.fullmatch(place.name)
        return [(named[1], named[2], place) if named else (place.stem, "", place)]
    if not place.is_dir():
        raise TextsError(f"there is no file or folder {place}: give what lm_eval wrote to --output_path.")
    found = [(m[1], m[2], one) for one in place.rglob("*.jsonl") if (m := _NAME.fullmatch(one.name))]
    if not found:
        held = "results and no samples" if any(place.rglob("results*.json")) else "no samples of lm-eval"
        raise TextsError(f"{place} holds {held} (samples_TASK_DATE.jsonl): {_AGAIN}.")
    return found


def _results(folder: Path, date: str) -> dict[str, Any]:
    for path in sorted(folder.glob(f"*_{date}.json")) if date else ():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as wrong:
            raise TextsError(f"{path.name} is no JSON file ({wrong}): {_AGAIN}.") from None
        if isinstance(found, dict) and "configs" in found:
            return found
    return {}


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        for row in every_row(path):
            if not {"doc", "arguments", "target"} <= row.fields.keys():
                raise TextsError(say("samples.unread.no_sample", name=path.name, line=row.line, again=_AGAIN))
            if not isinstance(row.fields["arguments"], dict) or "prompt_hash" not in row.fields:
                raise TextsError(say("samples.unread.older", name=path.name, again=_AGAIN))
            yield row.fields
    except TextsError as error:
        raise TextsError(f"{str(error).rstrip('.')}; {_AGAIN}.") from None


def _item(row: Mapping[str, Any], path: Path, task: str) -> _Item:
    """One item; TextsError where its prompt is not the one that was hashed."""
    asked, number = row["arguments"], row.get("doc_id")
    requests = [asked[name] for name in sorted(asked, key=lambda name: int(name.rpartition("_")[2]))]
    contexts = tuple(one.get("arg_0") for one in requests)
    if not contexts or not all(isinstance(one, str) for one in contexts):
        raise TextsError(say("samples.unread.no_prompt", name=path.name, item=number))
    if hashlib.sha256(contexts[0].encode()).hexdigest() != row["prompt_hash"]:
        raise TextsError(say("samples.unread.changed_prompt", file=path.name, item=number, again=_AGAIN))
    continuations = tuple(one.get("arg_1") if isinstance(one.get("arg_1"), str) else "" for one in requests)
    named = row.get("metrics", ())
    figures = {name: float(row[name]) for name in named if isinstance(row.get(name), int | float)}
    doc, mark = row["doc"] if isinstance(row["doc"], dict) else {}, str(row.get("doc_hash", ""))
    return _Item(f"{task} {number}", doc, mark, contexts, continuations, str(row["target"]), figures)


def metric_of(log: _SampleLog, others: _SampleLog | None, named: str | None) -> str:
    """The metric that counts as right or wrong, in both logs; TextsError where there is none."""
    items = [*log.items, *(others.items if others else ())]
    shared = [name for name in items[0].figures if all(0 <= one.figures.get(name, -1) <= 1 for one in items)]
    if named in shared or (named is None and shared):
        return named or shared[0]
    has = f"those that have one are {', '.join(shared)}" if shared else "it has none, as perplexities have"
    raise TextsError(say("samples.unread.no_metric", task=log.task, metric=named or "no metric", has=has))


LOG = Option("What is read of the log, as in task=arc_easy,metric=acc.", name="log", panel=TEXTS)
_ACCURACY = "Accuracy"
"""The group of options on what is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesSettings:
    """What is read of a log and what is compared; ExpressionError for a value out of its range."""

    task: str | None = LOG.key(None, "Task of the log, where it has several.", essential=True)
    metric: str | None = LOG.key(None, "Metric that says whether an item is right; the first unless given.")
    filter: str | None = LOG.key(None, "Filter by which answers were read; the first unless given.")
    part: Part = option(
        "item",
        "What is read of a request: item (the item and its right answer, without the examples in front of it), "
        "question (the same without the answer) or prompt (all that the model was given, and the right answer).",
        of=LOG,
    )
    group_field: str = LOG.key(
        "", "Field of an item's document that names what items belong together.", name="group"
    )
    suspect_p: float | None = option(
        None,
        "Compare items with a p-value of at most this, instead of the flagged ones. Of items that were not seen, this "
        "share is among them.",
        panel=_ACCURACY,
    )

    def __post_init__(self) -> None:
        require(self.part in get_args(Part), f"--log part is item, question or prompt, found {self.part!r}.")
        p = self.suspect_p
        require(p is None or 0 < p < 1, f"--suspect-p lies between 0 and 1, found {p}.")


SUSPECT, CLEAN, TOTAL, KNOWN = "suspect items", "clean items", "items in all", "known non-members"
"""The sides whose accuracy stands side by side."""
_OUTCOMES: Mapping[Outcome, Outcome] = {"flagged": "consistent", "set": "consistent", "none": "nothing"}
_LOGGED = "model_source model_name lm_eval_version transformers_version chat_template_sha date".split()  # noqa: SIM905


def samples(  # noqa: PLR0913
    log: _SampleLog,
    known: Corpus,
    models: Models,
    settings: SamplesSettings | None = None,
    flagging: FlagSettings | None = None,
    *,
    others: _SampleLog | None = None,
    progress: Progress | None = None,
) -> tuple[Verdict, Verdict]:
    """The accuracy of suspect items beside that of the others, and the flagging that tells them apart from `known`
    non-members, of which `others` is the log where they were evaluated too. The outcome is that of the flagging:
    "consistent" where items or the set stand out, "nothing" where neither does and `flagging.power` showed that a tenth
    of the items, if seen, would have been noticed, else "inconclusive". Errors as in `flag` and `_SampleLog.corpus`."""
    settings = settings or SamplesSettings()
    metric = metric_of(log, others, settings.metric)
    corpus = log.corpus(settings.part, settings.group_field)
    flagged = flag(corpus, known, models, flagging, progress=progress)
    texts, line, counts = flagged.table("flags"), settings.suspect_p, flagged.figures["counts"]
    right = log._column(metric, texts["id"])
    chosen, marked = {TOTAL: np.ones(len(texts), dtype=bool)}, np.full(len(texts), np.nan)
    if flagged.outcome != "refused":
        suspect = texts["p"] <= line if line is not None else np.ma.filled(texts["flagged"], False)
        chosen, marked = chosen | {SUSPECT: suspect, CLEAN: ~suspect}, suspect.astype(np.float64)
    documents = np.array(texts["document"], dtype=object)
    sides = {k: means(right[rows], documents[rows].tolist()) for k, rows in chosen.items() if rows.any()}
    if others is not None:
        table = flagged.table("known")
        sides[KNOWN] = means(others._column(metric, table["id"]), table["document"])
    effect = score_difference(sides[SUSPECT], sides[CLEAN]) if {SUSPECT, CLEAN} <= sides.keys() else None
    outcome = _OUTCOMES.get(flagged.outcome, "inconclusive")
    numbers = {name: flagged.figures[name] for name in ("nonmembers", "score")} | {
        "task": log.task,
        "model": flagged.model,
        "file": log.path.name,
        "metric": metric,
        "share": f"{100 * (flagged.figures['fdr'] if line is None else line):g}%",
    }
    ends = np.array([[one.value, one.low, one.high] for one in map(score_interval, sides.values())])
    rates = dict(zip(sides, ("{:.1f}% [{:.1f}, {:.1f}]".format(*row) for row in 100 * ends), strict=True))
    each = ", ".join(f"{rate} of {len(sides[name]):,} {name}" for name, rate in rates.items())
    reasons = [say("samples.right", **numbers, sides=each)]
    reasons.append(say("samples.difference", points=_points(effect)) if effect else say("samples.one_side"))
    if KNOWN in sides:
        reasons.append(say("samples.beside", points=_points(score_difference(sides[TOTAL], sides[KNOWN]))))
    accuracy = dict(zip(sides, ends.tolist(), strict=True))
    shown = {"all": rates[TOTAL], "suspect": rates.get(SUSPECT), "clean": rates.get(CLEAN)}
    total = say(f"samples.sides.{'two' if effect and outcome != 'inconclusive' else 'all'}", **shown)
    trust = ("no_proof", *(("answer",) * (settings.part != "question")), *(("known",) * (KNOWN in sides)))
    said: dict[str, Any] = fill(sentences_of("samples.said"), **numbers)
    compared = [say(f"samples.{one}", **numbers) for one in ("requests", f"read.{settings.part}", "scored")]
    how = "flagged" if line is None else "line"
    read = {"task": log.task, "file": log.path.name, "filter": log.filter, "few-shot examples": log._shots}
    read |= {name: log.results[name] for name in _LOGGED if log.results.get(name) is not None}
    shares = dict(zip(("accuracy", "low", "high"), ends.T, strict=True))
    shares = {"items": np.array([float(len(one)) for one in sides.values()]), **shares}
    items = {metric: right, **{name: texts[name] for name in ("score", "p", "q")}, "suspect": marked}
    verdict = Verdict(
        test="samples",
        corpus=log.task,
        model=flagged.model,
        outcome=outcome,
        statement=say(f"samples.statement.{outcome}", **numbers, total=total),
        level=flagged.level,
        exact=False,
        p=flagged.p,
        units=flagged.units,
        unit="item",
        compared=(" ".join(compared), *(say(f"samples.{one}", **numbers) for one in (how, "stands"))),
        trust=tuple(say(f"samples.trust.{one}") for one in trust),
        effect=effect,
        checks=flagged.checks,
        reasons=(*reasons, flagged.statement, *flagged.reasons),
        advice=flagged.advice,
        notes=(*corpus.notes, *flagged.notes),
        figures={"metric": metric, "accuracy": accuracy, "flagged items": counts["flagged"]},
        tables=(
            Table("items", {"item": texts["id"], "document": texts["document"], **items}),
            Table("accuracy", {"side": tuple(sides), **shares}),
        ),
        skipped=flagged.skipped,
        situation=Situation(documents=flagged.units, unseen=counts["known_documents"]),
        settings={  # what the flagging recorded, with the log in the place of its texts
            **{name: value for name, value in flagged.settings.items() if name != "texts"},
            "corpus": flagged.settings.get("texts", {}),
            "log": read,
            "test": {"metric": metric, "part": settings.part} | ({} if line is None else {"suspect_p": line}),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        **said,
    )
    return verdict, flagged


def _points(one: Estimate) -> str:
    return f"{100 * one.value:+.1f} percentage points [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"
