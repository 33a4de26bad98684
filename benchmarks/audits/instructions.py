"""What a model is instructed to write in place of a sample, and its answer as a text to be held against it."""

from __future__ import annotations

from collections.abc import Sequence

PARAPHRASE = "Paraphrase the last sample according to the other samples."
COMPLETION = "I have some text samples. Please help me complete the last sample based on my example samples."
"""What the paper asks for (its appendices A.1 and A.2); the samples follow, an empty line between two."""

_REPEATED = 12  # characters of the sample's end that an answer must begin with to be taken for a repetition


def instruction(words: str, examples: Sequence[str], sample: str) -> str:
    """An instruction with its examples and, last of all, the sample that it is about.

    >>> instruction("Paraphrase the last.", ["One.", "Two. "], "Three.")
    'Paraphrase the last.\\n\\nOne.\\n\\nTwo.\\n\\nThree.'
    """
    return "\n\n".join([words, *(example.strip() for example in examples), sample.strip()])


def continued(prefix: str, answer: str) -> str:
    """An answer as the text to be set right behind the prefix: without what it says again of it, and with a space
    where a word follows.

    >>> continued("It was a dark and stormy", "dark and stormy night.")
    ' night.'
    >>> continued("It was", ", so to speak")
    ', so to speak'
    """
    end, said = prefix.rstrip(), answer.strip()
    shortest = min(_REPEATED, len(end))
    for start in range(len(end) - shortest + 1):  # the longest repetition first
        if shortest and said.startswith(end[start:]):
            said = said[len(end) - start :]
            break
    else:
        apart = bool(said) and said[0].isalnum() and prefix == end
        return f" {said}" if apart else said
    return said if prefix == end else said.lstrip()
