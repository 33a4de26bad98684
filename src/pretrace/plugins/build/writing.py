"""What a builder leaves behind: JSON lines, a card that says how they were made, and how well words alone
tell the two sides apart (Das, Zhang and Tramèr 2024)."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.baselines import WIDENING, bag_of_words
from pretrace.errors import OutputError
from pretrace.results.atomic import (
    OutputFile,
    atomic_bytes,
    atomic_text,
    check_writable,
    json_object,
    json_with,
)
from pretrace.results.folder import file_hash, json_lines
from pretrace.results.wording import say
from pretrace.statistics.roc import group_bootstrap

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Built:
    """A benchmark that was built: its rows, what lies in its card, and where both were written."""

    rows: tuple[Row, ...]
    card: Mapping[str, Any]
    out: Path
    card_path: Path


def _card_of(out: Path) -> Path:
    """The card beside a benchmark: `patentmia.card.json` for `patentmia.jsonl`."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.card.json")


LeftOut = defaultdict[str, list[str]]
"""What did not become part of the benchmark: names by reason."""


def record_left_out(left: LeftOut) -> dict[str, Any]:
    """Counts and names by reason, in the same order whatever order they came in."""
    return {why: {"count": len(who), "ids": sorted(who)} for why, who in sorted(left.items()) if who}


CARD = OutputFile("card of a benchmark", json_with("settings", "sha256"))


def _has_its_card(path: Path) -> bool:
    card = json_object(_card_of(path)) or {}
    return "settings" in card and card.get("sha256") == file_hash(path)


_BENCHMARK = OutputFile("benchmark with its card", _has_its_card)


def check_place(out: Path, settings: Mapping[str, Any]) -> None:
    """OutputError where `out` cannot be written, or holds anything but what the same settings made."""
    if out.suffix != ".jsonl":
        raise OutputError(f"a benchmark is written as JSON lines: --out {out.name}.jsonl, found {out.name}.")
    check_writable(_card_of(out), CARD)
    check_writable(out, _BENCHMARK)
    if not out.exists():
        return
    old, new = (json_object(_card_of(out)) or {})["settings"], json.loads(json.dumps(settings))
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    changed = ", ".join(f"{one} {str(old.get(one))[:40]}, now {str(new.get(one))[:40]}" for one in names)
    if changed:
        raise OutputError(say("build.refused.other_settings", out=out, changed=changed))


def write(out: Path, rows: Sequence[Row], card: Mapping[str, Any]) -> Built:
    """The rows and their card on the disk, each whole or not at all; the card holds the hash of the rows. The card
    comes first: whoever is killed between the two can give the same command again."""
    content = json_lines(rows)
    card = {**card, "sha256": hashlib.sha256(content).hexdigest()}
    built = Built(tuple(rows), card, out, _card_of(out))
    check_writable(out, _BENCHMARK)
    written = json.dumps(card, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    atomic_text(built.card_path, written, CARD)
    atomic_bytes(out, content)
    return built


def add_strings(digest: Any, parts: Iterable[str]) -> Any:
    """Add strings to a hash, so that no two lists of strings have the same one."""
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest


def drawn_order(names: Iterable[str], seed: int, purpose: str) -> list[str]:
    """The names in an order drawn from the seed and each name alone: not from where it stands in the list."""
    return sorted(names, key=lambda name: (keyed(purpose, seed, name), name))


def keyed(purpose: str, seed: int, name: str) -> int:
    """A number drawn from purpose, seed and name, evenly over 128 bits."""
    return int(add_strings(hashlib.sha256(), (purpose, str(seed), name)).hexdigest()[:32], 16)


_TELLING = 0.6
"""AUC from which on the two classes of a benchmark are said to be told apart by their words."""


def blind_baseline(rows: Sequence[Row], *, seed: int, why: str) -> tuple[dict[str, Any], float | None]:
    """How well words alone tell members from non-members of a benchmark (Das et al. 2024): for its card, and the AUC
    (None for too few texts). `rows` have text, label (1: member) and group; `why` is what to bear in mind where they
    do. TextsError where one side is missing."""
    texts, members = [row["text"] for row in rows], np.array([row["label"] == 1 for row in rows])
    groups = [row["group"] for row in rows]
    judged, _ = bag_of_words(texts, members, groups, seed=seed)
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    columns = [lengths] if judged is None else [lengths, judged]
    spread = group_bootstrap(columns, members, groups=groups, seed=seed, resamples=200).auc
    auc = None if judged is None else spread.widened(1, WIDENING).estimate(1)
    tells = auc is not None and auc.low > 0.5 and auc.value >= _TELLING
    says = say(f"build.says.{'few' if auc is None else 'apart' if tells else 'hardly'}", auc=auc, why=why)
    plain: dict[str, Any] = {"bag_of_words_auc": None}
    for name, one in (("bag_of_words_auc", auc), ("text_length_auc", spread.estimate(0))):
        plain |= {name: [round(end, 4) for end in (one.value, one.low, one.high)]} if one else {}
    return {**plain, "tells_apart": tells, "says": says}, None if auc is None else auc.value
