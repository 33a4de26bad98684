"""The text of an item in a log of lm-evaluation-harness: what was asked, without the examples in front of it, with the
right answer behind it; and its answer options."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment

from pretrace.errors import TextsError
from pretrace.harnesses.sample_logs import Item, SampleLog
from pretrace.types import Corpus, Text, Trace

Part = Literal["item", "question", "prompt"]
OPTIONS = "options"
"""The column of an item's answer options."""
_QUESTIONS = ("question", "query", "ctx", "goal", "sentence", "problem")
_LETTER = re.compile(r"\W*[A-Za-z1-9]\W*")


@dataclass(frozen=True, slots=True)
class TextOf:
    """The items of a log as texts. `part` "item" leaves out what stands in front of the item itself, "question" the
    right answer too, and "prompt" keeps all.

    `group` names the field of a document by which items belong together; items with one document always do."""

    log: SampleLog
    part: Part = "item"
    group: str = ""

    def corpus(self) -> Corpus:
        """A text an item: what was asked, and the right answer where the log has one, unless it is left out."""
        texts, seen = [], Counter[str]()
        for item in self.log.items:
            place = _right(item)
            asked, how = self._asked(item, place)
            answer, told = ("", "") if self.part == "question" else self._answer(item, place)
            seen.update(filter(None, (how, told)))
            texts.append(Text(item.id, asked + answer, group=self._group(item)))
        return Corpus(
            self.log.task, tuple(texts), str(self.log.path), (*self.log.notes, *_notes(seen, len(texts)))
        )

    def with_options(self) -> Corpus:
        """A question an item, with its answer options in `Text.meta`; TextsError for tasks without options."""
        texts = []
        for item in self.log.items:
            found = _options(item)
            if len(found) < 2:
                raise TextsError(
                    f"{self.log.task} is no multiple-choice task whose options are in its log ({item.id!r}): leave "
                    "--options-out away."
                )
            texts.append(Text(item.id, self._question(item, found), meta={OPTIONS: json.dumps(found)}))
        return Corpus(self.log.task, tuple(texts), str(self.log.path), self.log.notes)

    def _asked(self, item: Item, place: int) -> tuple[str, str]:
        """What was asked, and how it was found where that needs a word."""
        prompt = item.contexts[place]
        if self.part == "prompt":
            return prompt, ""
        own = _rendered(self.log, item)
        begin = prompt.rfind(own) if own else -1
        if begin >= 0:
            return own, ""
        if not self.log.shots and not self.log.config.get("description"):
            return prompt, ""
        delimiter = str(self.log.config.get("fewshot_delimiter") or "\n\n")
        return prompt.rpartition(delimiter)[2], "cut"

    def _answer(self, item: Item, place: int) -> tuple[str, str]:
        """The right answer as the model would have read it, and what there is to say of that."""
        if any(item.continuations):
            return (item.continuations[place], "") if _gold(item) is not None else ("", "bare")
        if self.log.config.get("output_type") == "loglikelihood_rolling":
            return "", ""
        return str(self.log.config.get("target_delimiter", " ")) + item.target, ""

    def _group(self, item: Item) -> str:
        if not self.group:
            return item.hash
        if self.group not in item.doc:
            raise TextsError(
                f"{item.id} has no field {self.group!r}; it has {', '.join(item.doc)}: --group-field."
            )
        return str(item.doc[self.group])

    def _question(self, item: Item, options: Sequence[str]) -> str:
        """What stands above the options: the item itself, unless the options stand in it in their order."""
        asked = self._asked(item, _right(item))[0]
        if not all(option in asked for option in options):
            return asked
        for name in _QUESTIONS:
            if isinstance(item.doc.get(name), str):
                return str(item.doc[name])
        raise TextsError(
            f"{item.id} shows its options in the question, and no field of it ({', '.join(item.doc)}) is the question "
            "alone: test the order with `pretrace order` on the data set."
        )


def _rendered(log: SampleLog, item: Item) -> str:
    """What the task's own template makes of the document, "" where it is no template."""
    template = log.config.get("doc_to_text")
    if not isinstance(template, str) or not template:
        return ""
    if template in item.doc:
        return str(item.doc[template])
    try:  # a log comes from strangers, so a template runs in a sandbox
        return SandboxedEnvironment(keep_trailing_newline=True).from_string(template).render(**item.doc)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError):
        return ""


def _gold(item: Item) -> int | None:
    """The place of the right answer among the requests; None where the log does not tell."""
    if len(item.contexts) == 1:
        return 0
    try:
        written = ast.literal_eval(item.target)
    except (ValueError, SyntaxError):
        written = item.target
    first = written[0] if isinstance(written, list) and written else written
    if isinstance(first, int) and 0 <= first < len(item.contexts):
        return first
    answers = [one.strip() for one in item.continuations]
    return answers.index(str(first).strip()) if str(first).strip() in answers else None


def _right(item: Item) -> int:
    return _gold(item) or 0


def _options(item: Item) -> list[str]:
    """The options in the order that the data set has; a list of the document where the requests have letters alone."""
    own = [one.strip() for one in item.continuations]
    if len(set(item.contexts)) > 1 or not all(own):
        return []
    if not all(_LETTER.fullmatch(one) for one in own):
        return own
    lists = [
        found
        for value in item.doc.values()
        for found in (value, *(value.values() if isinstance(value, dict) else ()))
    ]
    texts = [
        one
        for one in lists
        if isinstance(one, list) and len(one) == len(own) and all(isinstance(x, str) for x in one)
    ]
    return next((one for one in texts if not all(_LETTER.fullmatch(x) for x in one)), [])


def _notes(seen: Counter[str], number: int) -> tuple[str, ...]:
    said = {
        "cut": "{} of {} prompts could not be matched with the task's template: what follows the last example "
        "delimiter was read.",
        "bare": "{} of {} items are read without an answer: the log does not tell which is right.",
    }
    return tuple(said[name].format(count, number) for name, count in seen.items())


# Where a text stands in a prompt whose tokens a provider gave back with their log-probabilities.


LONGEST_TOKEN = 40
"""Characters that a prompt may lack at its beginning."""


def trace_in_prompt(tokens: Sequence[tuple[str, float]], text: str) -> Trace | None:
    """The log-probabilities of the text's own tokens, in nats; None where the text is not in the prompt word for word.

    `tokens` are the pieces of the prompt in order, as text, each with its log-probability. A chat template and other
    messages stand around the text; where the text occurs several times the last one counts. A token belongs to the
    text where its first character that is no white space stands in it. A text that the prompt begins with may lack its
    first token, which no model without a start token predicts. Token ids are not known and are all 0.
    """
    wanted = text.strip()
    pieces = [piece for piece, _ in tokens]
    begin = _begin("".join(pieces), wanted)
    if begin is None:
        return None
    ends = np.cumsum([len(piece) for piece in pieces])
    firsts = ends - [len(piece.lstrip()) or len(piece) for piece in pieces]
    inside = (firsts >= begin) & (firsts < begin + len(wanted))
    logp = np.array([value for _, value in tokens], dtype=np.float32)[inside]
    return Trace(np.zeros(len(logp), dtype=np.int32), logp) if len(logp) else None


def _begin(prompt: str, wanted: str) -> int | None:
    """Where the text begins in the prompt, below 0 where its first token is lacking; None where it is not there."""
    begin = prompt.rfind(wanted)
    if not wanted or begin >= 0:
        return begin if wanted else None
    lacking = range(1, min(len(wanted), LONGEST_TOKEN + 1))
    return next((-number for number in lacking if prompt.startswith(wanted[number:])), None)
