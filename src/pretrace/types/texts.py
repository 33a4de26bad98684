"""What is asked about: texts, and corpora of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Text:
    """One text to be judged.

    `member` is True for a known member, False for a known non-member, None where nobody knows.
    `group` names the document (or author) the text was cut from; statistics resample groups, since
    pieces of one document are not independent. Without a group a text is its own. `meta` are further columns, by
    name (`Columns.more`), a list in one as JSON.
    """

    id: str
    text: str
    member: bool | None = None
    group: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def document(self) -> str:
        """The group, or the text's own id where it has none."""
        return self.group or self.id

    @property
    def copies(self) -> int | None:
        """Documents of a searched corpus that hold the text, where a scan counted them: the column `copies`."""
        return int(self.meta["copies"]) if "copies" in self.meta else None


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a benchmark beside its texts, in sentences a report can print.

    `size` is the published one; `flaws` say what a figure on it does not show, each with its source; `home` is
    a hub id or an address; `licence` is what its authors state, or that they state none.
    """

    title: str
    what: str
    size: str
    licence: str
    citation: str
    home: str
    flaws: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts under one name. `source` says where they came from; `notes` what was done on the way
    (bytes replaced, lines skipped), in sentences a report can print; `card` is that of a published benchmark."""

    name: str
    texts: tuple[Text, ...]
    source: str = ""
    notes: tuple[str, ...] = ()
    card: Card | None = None

    def __len__(self) -> int:
        return len(self.texts)
