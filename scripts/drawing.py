"""A picture of rooms on floors with arrows between them, as SVG; for `draw-rooms`.

Layers as Sugiyama, Tagawa and Toda (1981) draw them: an arrow that passes a row has a place of its own there, each row
is ordered so that few arrows cross, and places are then moved toward what they are joined to. Arrows to one room that
pass the same row share one line there.
"""

from __future__ import annotations

import math
import random
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

WIDTH, MARGIN, GUTTER = 1000.0, 22.0, 34.0
GAP, LANE = 20.0, 16.0  # between boxes, and the room that a passing arrow takes
BETWEEN = 46.0  # rows, where arrows bend
NARROW, WIDE = 120.0, 250.0  # boxes
NAME, TEXT, LINE = 15.0, 12.0, 15.5  # sizes of letters, and a line of text
LETTER = 0.535  # mean width of a letter over its size, on the wide side
HUES = (212, 262, 172, 32, 338, 140, 196, 48, 232, 12, 284)


@dataclass(frozen=True, slots=True)
class Box:
    """A room as it is drawn."""

    name: str
    floor: int
    sentence: str
    figures: str


@dataclass(slots=True, eq=False)
class Place:
    """Where a box, or an arrow that passes a row, stands. `box` None is an arrow to the room `name`."""

    name: str
    row: int
    box: Box | None = None
    width: float = LANE
    x: float = 0.0
    lines: list[str] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)
    above: list[Place] = field(default_factory=list)


def draw(boxes: Sequence[Box], arrows: Mapping[str, set[str]]) -> str:
    """The picture: one box a room, the ground floor below, arrows from a room to those it imports.

    `arrows` must not go round in circles. The same input gives the same text.
    """
    rows = _placed(boxes, arrows)
    _ordered(rows)
    _sized(rows)
    _moved(rows)
    return _svg(rows)


def _placed(boxes: Sequence[Box], arrows: Mapping[str, set[str]]) -> list[list[Place]]:
    """Places by row, from the top. A floor has several rows where its rooms import each other."""
    depth = {box.name: _depth(box.name, boxes, arrows) for box in boxes}
    levels = sorted({(box.floor, depth[box.name]) for box in boxes}, reverse=True)
    at = {box.name: levels.index((box.floor, depth[box.name])) for box in boxes}
    rooms = {box.name: Place(box.name, at[box.name], box) for box in boxes}
    rows: list[list[Place]] = [[] for _ in levels]
    for place in rooms.values():
        rows[place.row].append(place)
    for source in sorted(arrows, key=lambda name: (at[name], name)):
        for target in sorted(arrows[source]):
            _join(rooms[source], rooms[target], rows)
    return rows


def _depth(name: str, boxes: Sequence[Box], arrows: Mapping[str, set[str]]) -> int:
    """How many rooms of the same floor stand below one another under this one."""
    floors = {box.name: box.floor for box in boxes}
    same = [other for other in arrows.get(name, ()) if floors[other] == floors[name]]
    return max((1 + _depth(other, boxes, arrows) for other in same), default=0)


def _join(source: Place, target: Place, rows: list[list[Place]]) -> None:
    above = source
    for row in range(source.row + 1, target.row):
        lane = next((one for one in rows[row] if one.box is None and one.name == target.name), None)
        if lane is None:
            lane = Place(target.name, row)
            rows[row].append(lane)
        _link(above, lane)
        above = lane
    _link(above, target)


def _link(above: Place, below: Place) -> None:
    if below not in above.below:
        above.below.append(below)
        below.above.append(above)


def _ordered(rows: list[list[Place]]) -> None:
    """Order each row so that few arrows cross: means of neighbours from several beginnings, then swaps."""
    best, fewest = [list(row) for row in rows], _crossings(rows)
    for beginning in range(20):
        shuffled = random.Random(beginning)
        for row in rows:
            row.sort(key=lambda one: (one.name, one.row))
            shuffled.shuffle(row)
        for turn in range(12):
            for row in rows[1:] if turn % 2 == 0 else rows[-2::-1]:
                kept = {id(one): (index + 0.5) / len(row) for index, one in enumerate(row)}
                near = {id(one): _mean_index(one.above if turn % 2 == 0 else one.below, rows) for one in row}
                row.sort(key=lambda one: near[id(one)] if near[id(one)] >= 0 else kept[id(one)])
            if (found := _crossings(rows)) < fewest:
                best, fewest = [list(row) for row in rows], found
    rows[:] = best
    while _swap(rows):
        pass


def _mean_index(near: Sequence[Place], rows: list[list[Place]]) -> float:
    """The mean place of the neighbours in their row, from 0 to 1; -1 where there are none."""
    shares = [(rows[one.row].index(one) + 0.5) / len(rows[one.row]) for one in near]
    return math.fsum(shares) / len(shares) if shares else -1.0


def _swap(rows: list[list[Place]]) -> bool:
    """Swap two places wherever that saves crossings; whether any were."""
    fewest = start = _crossings(rows)
    for row in rows:
        for left in range(len(row) - 1):
            for right in range(left + 1, len(row)):
                row[left], row[right] = row[right], row[left]
                if (found := _crossings(rows)) < fewest:
                    fewest = found
                else:
                    row[left], row[right] = row[right], row[left]
    return fewest < start


def _crossings(rows: list[list[Place]]) -> int:
    count = 0
    for above, below in pairwise(rows):
        at = {id(one): index for index, one in enumerate(below)}
        lines = [(i, at[id(end)]) for i, one in enumerate(above) for end in one.below]
        count += sum((a - c) * (b - d) < 0 for n, (a, b) in enumerate(lines) for c, d in lines[n + 1 :])
    return count


def _sized(rows: list[list[Place]]) -> None:
    """Boxes as wide as their row allows, with their sentences in lines."""
    for row in rows:
        wide = [one for one in row if one.box]
        taken = math.fsum(
            _distance(left, right) - (left.width + right.width) / 2 for left, right in pairwise(row)
        )
        free = 0.93 * (WIDTH - 2 * MARGIN - GUTTER - taken - LANE * (len(row) - len(wide)))
        for one in wide:
            assert one.box is not None
            one.width = min(WIDE, max(NARROW, free / len(wide)))
            letters = int((one.width - 20) / (TEXT * LETTER))
            one.lines = textwrap.wrap(one.box.sentence, letters) or [""]


def _distance(left: Place, right: Place) -> float:
    """How far the middles of two neighbours must be apart."""
    lanes = left.box is None and right.box is None
    return (left.width + right.width) / 2 + (0 if lanes else GAP)


def _moved(rows: list[list[Place]]) -> None:
    """Give every place its x: toward what it is joined to, in order and without touching."""
    for row in rows:
        _spread(row, [WIDTH / 2] * len(row))
    for turn in range(200):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            _spread(row, [_wanted(one) for one in row])


def _wanted(one: Place) -> float:
    """The mean of the neighbours; an arrow that passes several rows wants to stay straight."""
    near = one.above + one.below
    if one.box is None:
        near = _lane(one) or near
    return math.fsum(other.x for other in near) / len(near) if near else one.x


def _lane(one: Place) -> list[Place]:
    """The same arrow in the rows above and below, without itself."""
    found, waiting = [], [one]
    while waiting:
        place = waiting.pop()
        for other in place.above + place.below:
            if other.box is None and other is not one and other not in found:
                found.append(other)
                waiting.append(other)
    return found


def _spread(row: list[Place], wanted: Sequence[float]) -> None:
    """The places nearest to those wanted that keep order and distance (pool adjacent violators)."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + _distance(left, right))
    blocks: list[tuple[float, int]] = []
    for value, offset in zip(wanted, offsets, strict=True):
        mean, size = value - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    low = MARGIN + GUTTER + row[0].width / 2
    high = WIDTH - MARGIN - row[-1].width / 2 - offsets[-1]
    means = [min(max(mean, low), high) for mean, size in blocks for _ in range(size)]
    for one, mean, offset in zip(row, means, offsets, strict=True):
        one.x = mean + offset


def _svg(rows: list[list[Place]]) -> str:
    heights = [_height(row) for row in rows]
    tops = [MARGIN + BETWEEN / 2]
    for height in heights:
        tops.append(tops[-1] + height + BETWEEN)
    foot = tops[-1] - BETWEEN / 2
    total = foot + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {total:g}" role="img" '
        'aria-labelledby="title" font-family="-apple-system, \'Segoe UI\', Helvetica, Arial, sans-serif">',
        '<title id="title">The rooms of pretrace on their floors, and which imports which</title>',
        f'<rect width="{WIDTH:g}" height="{total:g}" fill="#ffffff"/>',
        *_floors(rows, tops, heights),
        *_arrows(rows, tops, heights),
        *(_box(one, row, tops[one.row], heights[one.row]) for row in rows for one in row if one.box),
        f'<text x="{MARGIN + GUTTER:g}" y="{foot + 24:g}" font-size="{TEXT:g}" fill="#57606a">'
        "An arrow leads from a room to one that it imports; what other arrows imply is left out.</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _height(row: Sequence[Place]) -> float:
    return 46 + LINE * max(len(one.lines) for one in row)


def _floors(rows: list[list[Place]], tops: list[float], heights: list[float]) -> list[str]:
    """A band for each floor, with its number."""
    found = []
    floors = [next(one.box.floor for one in row if one.box) for row in rows]
    for floor in sorted(set(floors)):
        own = [index for index, of in enumerate(floors) if of == floor]
        top = tops[own[0]] - BETWEEN / 2 + 3
        height = tops[own[-1]] + heights[own[-1]] + BETWEEN / 2 - 3 - top
        found.append(
            f'<rect x="{MARGIN - 8:g}" y="{top:.1f}" width="{WIDTH - 2 * MARGIN + 16:g}" height="{height:.1f}" '
            f'rx="8" fill="hsl({_hue(floor)}, 45%, 97%)"/>'
        )
        found.append(
            f'<text x="{MARGIN + 6:g}" y="{top + height / 2 + 7:.1f}" font-size="20" font-weight="600" '
            f'fill="hsl({_hue(floor)}, 30%, 66%)" text-anchor="middle">{floor}</text>'
        )
    return found


def _arrows(rows: list[list[Place]], tops: list[float], heights: list[float]) -> list[str]:
    found = []
    hues = {one.name: _hue(one.box.floor) + _shift(one, row) for row in rows for one in row if one.box}
    for row in rows:
        for one in row:
            bottom = tops[one.row] + heights[one.row]
            ends = sorted(one.below, key=lambda end: end.x)
            for index, end in enumerate(ends):
                start = one.x + (index - (len(ends) - 1) / 2) * min(26, one.width * 0.6 / len(ends))
                colour = f"hsl({hues[end.name]}, 42%, 44%)"
                arrives = end.box is not None
                stop = tops[end.row] - (7 if arrives else 0)
                bend = (stop - bottom) * 0.55
                line = f"M{start:.1f} {bottom:.1f}C{start:.1f} {bottom + bend:.1f} {end.x:.1f} {stop - bend:.1f} "
                line += f"{end.x:.1f} {stop:.1f}"
                line += "" if arrives else f"V{tops[end.row] + heights[end.row]:.1f}"
                found.append(f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
                if arrives:
                    tip = f"M{end.x:.1f} {stop + 7:.1f}l-4 -8h8z"
                    found.append(f'<path d="{tip}" fill="{colour}"/>')
    return list(dict.fromkeys(found))


def _box(one: Place, row: Sequence[Place], top: float, height: float) -> str:
    assert one.box is not None
    left = one.x - one.width / 2
    hue = _hue(one.box.floor) + _shift(one, row)
    texts = [
        f'<text x="{one.x:.1f}" y="{top + 20:.1f}" font-size="{NAME:g}" font-weight="600" fill="#1f2328">'
        f"{escape(one.box.name)}</text>"
    ]
    for number, line in enumerate(one.lines):
        texts.append(
            f'<text x="{one.x:.1f}" y="{top + 37 + number * LINE:.1f}" font-size="{TEXT:g}" fill="#424a53">'
            f"{escape(line)}</text>"
        )
    texts.append(
        f'<text x="{one.x:.1f}" y="{top + height - 8:.1f}" font-size="11" fill="#656d76">'
        f"{escape(one.box.figures)}</text>"
    )
    return (
        f'<g text-anchor="middle"><rect x="{left:.1f}" y="{top:.1f}" width="{one.width:.1f}" height="{height:.1f}" '
        f'rx="6" fill="#ffffff" stroke="hsl({hue}, 35%, 60%)" stroke-width="1.2"/>{"".join(texts)}</g>'
    )


def _shift(one: Place, row: Sequence[Place]) -> int:
    """Rooms of a row differ a little in colour, and so do the arrows to them."""
    boxes = [other for other in row if other.box]
    return 28 * boxes.index(one) - 14 * (len(boxes) - 1)


def _hue(floor: int) -> int:
    return HUES[floor % len(HUES)]
