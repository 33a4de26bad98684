"""The rule of folding in Python, by which the kernels are judged."""

import re
import unicodedata
from functools import cache
from itertools import groupby

import numpy as np

from pretrace.plugins.scan.folding import _NAMES, BLOCK, CHARACTERS, MARKS, TAG, _letters_of

_AND = rb"(?:&|\\+u0026)(?:amp;)*"
_LESS = rb"(?:<|%(and)slt;|\\+u003[cC])" % {b"and": _AND}
_MORE = rb"(?:>|%(and)sgt;|\\+u003[eE])" % {b"and": _AND}
_NUMBER = rb"(?:[ \t]|\\+t)*[(\[]?[0-9]{1,6}[.):\]|](?![0-9])"
_MARKUP = re.compile(
    rb"(?P<tag>%(less)s(?:(?:\\*/|\?)?[A-Za-z]|!(?:[A-Za-z]|--))(?:(?!%(less)s|%(more)s)[\s\S]){0,%(most)d}%(more)s)"
    rb"|%(and)s(?P<entity>#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)?"
    rb"|(?P<line>(?:\n|\\+n)(?:%(number)s)?|\A%(number)s)"
    rb"|\\+u(?P<code>[0-9a-fA-F]{4})(?:(?<=u[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))?"
    rb"|\\+[rtbf]?" % {b"less": _LESS, b"more": _MORE, b"and": _AND, b"number": _NUMBER, b"most": TAG}
)


_ESCAPE = re.compile(rb'\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)|\\(?:u(....)|(["\\/bfnrt]))')
_SIGNS = dict(zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True))


def unescape(written: bytes) -> bytes:
    """The bytes that a string of JSON stands for."""

    def one(found: re.Match[bytes]) -> bytes:
        high, low, code, sign = found.groups()
        if sign:
            return bytes([_SIGNS[sign[0]]])
        if code:
            return chr(int(code, 16)).encode("utf-8", "surrogatepass")
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00).encode()

    return _ESCAPE.sub(one, written)


@cache
def _letters(character, spaced):
    if ord(character) >= CHARACTERS:
        return ""
    return " " if spaced and character.isspace() else _letters_of(character)


def fold_plainly(raw, *, spaced=False):
    """Fold the bytes of a string; with `spaced` white space and markup leave a space, by which words are told apart."""
    read = _MARKUP.sub(lambda one: _meaning(one, spaced), raw).decode("utf-8", "replace")
    kept = "".join(_letters(one, spaced) for one in read).replace(
        "i\u0307", "i"
    )  # İ, whose small letter is dotted
    made = []
    for _, some in groupby(kept, lambda one: unicodedata.combining(one) > 0):
        run = [*some]
        for at in range(0, len(run), MARKS):
            made += sorted(run[at : at + MARKS], key=unicodedata.combining)
    return "".join(made).encode()


def _meaning(found, spaced):
    """What a piece of markup is read as; a byte that is no UTF-8 stands for nothing."""
    nothing = b"\xff"
    if entity := found["entity"]:
        name = entity[:-1]
        if name[:1] != b"#":
            meaning = _NAMES.get(name)
            return nothing + entity if meaning is None else meaning.encode()
        code = int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:])
    elif found["code"]:
        code = int(found["code"], 16)
        if found["low"]:
            code = 0x10000 + ((code - 0xD800) << 10) + int(found["low"], 16) - 0xDC00
    else:
        blank = found["tag"] or found["line"] is not None or found[0][-1:] in b"rtbf"
        return b" " if spaced and blank else nothing
    return chr(code).encode() if code < 0xD800 or 0xDFFF < code < 0x110000 else nothing


def fold_strings_plainly(strings, kept, *, exact, spaced):
    """What `fold_strings` gives: `kept` are the bytes that each string comes behind, None for the one before it."""
    raw, spans = b"", []
    for i, head in enumerate(kept):
        raw += b"" if head is None else b"\xff" + head
        written = bytes(memoryview(strings.raw)[slice(*strings.places[i].tolist())])
        if exact:
            made = (unescape(written) if strings.escaped[i] else written).replace(b"\xff", b"?")
        else:
            made = fold_plainly(written, spaced=spaced)
        spans.append((len(raw), len(raw) + len(made)))
        raw += made
    return np.frombuffer(raw + b"\xff" * BLOCK, dtype=np.uint8), np.array(spans, dtype=np.int64).reshape(
        -1, 2
    )
