"""What can go wrong. A message says what was wanted, what was found and what to do, in one or two sentences. The
command line prints it on one line and leaves with exit code 2."""

from __future__ import annotations

import difflib
import errno
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BESIDE = 2_000
"""Names beside a path that are looked at."""
_JOINERS = frozenset({"\u200c", "\u200d"})  # these hold emoji and Persian words together; they move nothing


def shown(text: str, *, keep: str = "", every: bool = False) -> str:
    """Text from strangers, safe to look at: control, bidirectional and other unseen characters as escapes, so that none
    can steer a terminal or reorder a page. Those in `keep` stay; `every` character is escaped where that is asked for.

    >>> shown("a\\x1b[2Jb\\u202ec\\n", keep="\\n")
    'a\\\\x1b[2Jb\\\\u202ec\\n'
    """
    if text.isprintable() and not every:
        return text
    return "".join(_escape(one) if every or (one not in keep and _is_hidden(one)) else one for one in text)


def _is_hidden(character: str) -> bool:
    code = ord(character)
    # The noncharacters may not stand in SVG at all, and a browser shows them as it likes.
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return True
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def suggest(name: str, known: Iterable[str] = ()) -> str:
    """ " Did you mean …?" with the nearest of what is known, and of what lies beside a path; "" where nothing is near.

    >>> suggest("smolm2", ["smollm2"])
    ' Did you mean smollm2?'
    """
    path = Path(name).expanduser()
    beside: dict[str, str] = {one: one for one in known}
    with suppress(OSError, ValueError):
        others = (one.name for one in islice(path.parent.iterdir(), _BESIDE) if one.name != path.name)
        beside |= {one: str(path.with_name(one)) for one in others}
    near = difflib.get_close_matches(path.name or name, beside, n=1) or difflib.get_close_matches(
        name, beside, n=1
    )
    return f" Did you mean {beside[near[0]]}?" if near else ""


def regular(path: Path) -> Path:
    """The path; OSError where a pipe or a device is there, which nobody may ever write to."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))
    return path


class PretraceError(Exception):
    """Something a user can mend: the message names the cure."""


class TextsError(PretraceError):
    """The texts cannot be read as asked: file, columns, labels, ids."""


class ShortTextsError(TextsError):
    """Too few texts are as long as the snippets that are to be cut of them, or a model reads none of these whole."""


class ExpressionError(PretraceError):
    """A score or corpus expression is wrong: unknown name, unknown parameter, value out of range."""


class ModelError(PretraceError):
    """A model cannot be opened safely, or cannot give what a score needs."""


class TableError(PretraceError):
    """A token count table is damaged, or was counted with another tokenizer."""


class LeakError(PretraceError):
    """A text that was used for fitting is about to be scored."""


class OutputError(PretraceError):
    """The results cannot be written where they were asked for."""


class MissingPackageError(PretraceError):
    """An optional package is needed; the message gives its pip line."""

    def __init__(self, package: str, purpose: str, extra: str = "", *, alone: bool = False) -> None:
        """Without an `extra` the package is named itself. `alone`: it is installed by itself, without what it asks for,
        which pretrace does not use."""
        line = f"--no-deps {package}" if alone else f"'pretrace[{extra}]'" if extra else package
        super().__init__(f"{purpose} needs the package {package}, which is not installed: pip install {line}")


def require(good: bool, message: str) -> None:
    """Raise ExpressionError unless a parameter is in its range; for `__post_init__` of scores."""
    if not good:
        raise ExpressionError(message)


def require_least(what: str, settings: object, **least: float) -> None:
    """ExpressionError for a field of settings, called `what`, that is below its least value; None is no value."""
    for name, bound in least.items():
        found = getattr(settings, name)
        require(found is None or found >= bound, f"{what}: {name} must be at least {bound}, found {found!r}.")


@contextmanager
def one_error(what: str, cure: str = "") -> Iterator[None]:
    """Turn whatever the code of a model or of its reader raises while the context lasts into one ModelError: `what`
    failed, its reason, and the cure. What pretrace raises, a device without room and an end that was asked for pass.

    The tokenizers library panics with a BaseException of a class that cannot be imported.
    """
    try:
        yield
    except BaseException as error:
        own = isinstance(error, PretraceError) or type(error).__name__ == "OutOfMemoryError"
        if own or not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ModelError(f"{what}: {reason.rstrip('.')}.{cure and ' ' + cure}") from error
