"""Members and non-members in files of their own, told apart by the names of the files and folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pretrace.corpora.benchmarks.published import Schema, joined, published, tables
from pretrace.corpora.opening import shown
from pretrace.corpora.reading import counted
from pretrace.errors import TextsError
from pretrace.types import Corpus, Text

MEMBERS, NONMEMBERS = "members", "nonmembers"


@dataclass(frozen=True, slots=True)
class PathLabels:
    """How the files of the two sides are called: their names, or those of folders above them, begin so.

    A part of a path that begins with one of `neither` tells nothing.
    """

    members: tuple[str, ...]
    nonmembers: tuple[str, ...]
    neither: tuple[str, ...] = ()

    def side(self, file: Path) -> str:
        """The side of a file below the folder that was given, "" where no part of its path tells; TextsError
        where one part tells this side and another that one."""
        told: dict[str, str] = {}
        for part in file.parts:
            for name, beginnings in ((NONMEMBERS, self.nonmembers), (MEMBERS, self.members)):
                if part.lower().startswith(beginnings) and not part.lower().startswith(self.neither):
                    told.setdefault(name, part)
                    break
        if len(told) > 1:
            raise TextsError(
                f"{shown(file)} may hold members ({shown(Path(told[MEMBERS]))!r}) or non-members "
                f"({shown(Path(told[NONMEMBERS]))!r}): rename the file or its folders so that they agree."
            )
        return next(iter(told), "")


def read_by_path(path: Path, names: PathLabels, schema: Schema) -> Corpus:
    """Both sides of a folder, or a single file with a column `label`, as one corpus.

    Ids are SIDE/FILE/ROW (the file left out where a side has one). A note names the files that tell no side. Raises
    TextsError where a side has no file, or a file tells both.
    """
    if not path.is_dir():
        return published(path, replace(schema, label="label"))
    files = tables(path)
    by_side: dict[str, list[Path]] = {MEMBERS: [], NONMEMBERS: [], "": []}
    for file in files:
        by_side[names.side(file.relative_to(path))].append(file)
    others = by_side.pop("")
    if len(files) == len(others) == 1:
        return published(files[0], replace(schema, label="label"))
    for side, wanted in ((MEMBERS, names.members), (NONMEMBERS, names.nonmembers)):
        if not by_side[side]:
            raise TextsError(
                f"{shown(path)} holds no file of {side}: their names, or their folders' names, begin with "
                f"{' or '.join(wanted)}; a single file needs a column 'label'."
            )
    parts = {
        side if len(found) == 1 else f"{side}/{file.relative_to(path).as_posix()}": (side, file)
        for side, found in by_side.items()
        for file in found
    }
    read = {key: labelled(published(file, schema), side == MEMBERS) for key, (side, file) in parts.items()}
    corpus = joined(read, schema.benchmark, shown(path))
    if not others:
        return corpus
    note = (
        f"{counted(len(others), 'file')} not read, whose names tell no side, such as "
        f"{shown(others[0].relative_to(path))}."
    )
    return replace(corpus, notes=(*corpus.notes, note))


def labelled(corpus: Corpus, member: bool) -> Corpus:
    """The corpus with every text known as a member, or as none."""
    return replace(corpus, texts=tuple(replace(text, member=member) for text in corpus.texts))


def matching(corpus: Corpus, wanted: Callable[[Mapping[str, str]], bool], what: str) -> Corpus:
    """The texts of both sides whose meta is wanted, with a note; TextsError where a side has none of `what`."""
    taken: tuple[Text, ...] = tuple(text for text in corpus.texts if wanted(text.meta))
    for member, side in ((True, MEMBERS), (False, NONMEMBERS)):
        if not any(text.member is member for text in taken):
            raise TextsError(
                f"{corpus.source} holds no {side} of {what}: ask for another part, or add theirs."
            )
    if len(taken) == len(corpus):
        return corpus
    note = f"{len(taken)} of {len(corpus)} texts taken: those of {what}."
    return replace(corpus, texts=taken, notes=(*corpus.notes, note))
