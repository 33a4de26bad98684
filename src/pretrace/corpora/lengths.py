"""Long texts cut into windows that a model can read whole, so that nothing of them goes unread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pretrace.corpora.reading import refuse_repeated_ids
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.rounding import plural
from pretrace.results.wording import say
from pretrace.types import Backend, Corpus, Encoded, Text

_ENCODED_TOGETHER = 64
_FIRST_CHARACTERS_PER_TOKEN = 6.0
MARGIN = 1.25


def windows(corpus: Corpus, backend: Backend, max_tokens: int | None = None) -> Corpus:
    """The corpus with each text of more than `max_tokens` tokens (the model's limit unless given, start token included)
    cut into consecutive windows that fit. The windows of the text ID are ID#0, ID#1, …, with its label and, as their
    group, its document. Put together they are the text again; none begins inside a character. A last window of fewer
    than two tokens or only white space is evened out with the one before it; where that is no better it stays, and
    `notes` counts it. Raises ExpressionError for `max_tokens` below 2, TextsError where a single character takes more
    tokens than allowed or a new id exists already."""
    limit = backend.max_tokens if max_tokens is None else min(max_tokens, backend.max_tokens)
    require(limit >= 2, f"windows need a max_tokens of at least 2, found {limit}.")
    texts: list[Text] = []
    cut = made = poor = 0
    for start in range(0, len(corpus), _ENCODED_TOGETHER):
        some = corpus.texts[start : start + _ENCODED_TOGETHER]
        for text, encoded in zip(some, backend.encode([text.text for text in some]), strict=True):
            if _fits(encoded, limit):
                texts.append(text)
                continue
            pieces = _Cutter(backend, limit, text, int(limit * _FIRST_CHARACTERS_PER_TOKEN)).pieces()
            texts += [
                replace(text, id=f"{text.id}#{place}", text=piece, group=text.document)
                for place, piece in enumerate(pieces)
            ]
            cut, made = cut + 1, made + len(pieces)
            poor += sum(_poor(piece, backend) for piece in pieces)
    if not cut:
        return corpus
    refuse_repeated_ids([text.id for text in texts], f"{corpus.name} cut into windows")
    notes = [f"{plural(cut, 'text')} of more than {limit} tokens cut into {made} windows."]
    notes += [f"{plural(poor, 'window')} of only white space or fewer than 2 tokens kept."] if poor else []
    return replace(corpus, texts=tuple(texts), notes=(*corpus.notes, *notes))


@dataclass
class _Cutter:
    """Cuts one text, whose rest is encoded `reach` characters at a time, a little further than a window: work grows
    with the text, not its square."""

    backend: Backend
    limit: int
    text: Text
    reach: int

    def pieces(self) -> list[str]:
        """The windows of the text, in order, none of them empty."""
        pieces: list[str] = []
        rest = 0
        while rest < len(self.text.text):
            pieces.append(self.text.text[rest : rest + self._window(rest)])
            rest += len(pieces[-1])
        if len(pieces) > 1 and _poor(pieces[-1], self.backend):
            # two of about as many tokens each, if that is better
            both = pieces[-2] + pieces[-1]
            spans = self.backend.spans(both)
            middle = len(spans) // 2
            size = int(min(spans[middle - 1, 1], spans[middle, 0])) if middle else 0
            halves = [both[:size], both[size:]]
            if all(self._fits(half) and not _poor(half, self.backend) for half in halves):
                pieces[-2:] = halves
        return pieces

    def _window(self, start: int) -> int:
        """Characters of the window that starts here."""
        while True:
            ahead = self.text.text[start : start + self.reach]
            (encoded,) = self.backend.encode([ahead])
            if not _fits(encoded, self.limit):
                break
            if start + len(ahead) == len(self.text.text):
                return len(ahead)
            self.reach *= 2
        size = self._fitting(ahead, self.limit - len(encoded.prefix))
        self.reach = int(size * MARGIN) + 4
        return size

    def _fitting(self, ahead: str, tokens: int) -> int:
        """Characters of the first `tokens` tokens, or of somewhat fewer: as many as fit on their own."""
        spans = self.backend.spans(ahead)
        tried = len(ahead)
        for count in range(min(tokens, len(spans) - 1), 0, -1):
            # a gap between two tokens goes to the second, which is how a space is encoded; where two
            # tokens share a character the cut comes before it
            size = int(min(spans[count - 1, 1], spans[count, 0]))
            if 0 < size < tried:
                tried = size
                if self._fits(ahead[:size]):
                    return size
        while not self._fits(ahead[:tried]):  # inside what the tokenizer took for one token
            if tried == 1:
                raise TextsError(say("texts.long_character", id=self.text.id, limit=self.limit))
            tried //= 2
        return tried

    def _fits(self, text: str) -> bool:
        return _fits(self.backend.encode([text])[0], self.limit)


def _fits(encoded: Encoded, limit: int) -> bool:
    return encoded.cut == 0 and encoded.length <= limit


def _poor(piece: str, backend: Backend) -> bool:
    return not piece.strip() or len(backend.encode([piece])[0].tokens) < 2
