"""The loops over bytes that numba compiles; imported only where numba is there, kept compiled beside the package."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pretrace.plugins.scan.folding import BLOCK, GAP, MARKS, SPACE, TAG
from pretrace.plugins.scan.searching import COMMON, SHORT

compiled: Any = numba.njit(nogil=True, cache=True)


@compiled
def _load(raw: Any, i: int) -> Any:
    """The 8 bytes of an array from a place on as one number; what is compiled of it is one load."""
    at, number = np.uint64(i), np.uint64(0)
    for k in range(8):
        number |= np.uint64(raw[at + np.uint64(k)]) << np.uint64(8 * k)
    return number


_TOPS = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_PAIR = np.uint64(0xFFFF)
_BY, _AGAIN = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
"""Odd numbers by which a 64-bit number is mixed (the finalizer of MurmurHash3, in the public domain)."""
_QUOTES, _BACKSLASHES = (np.uint64(0x0101010101010101 * ord(sign)) for sign in '"\\')
BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MEANT = np.arange(256, dtype=np.uint8)
"""What a byte behind a backslash stands for in JSON."""
_MEANT[list(b"bfnrt")] = list(b"\b\f\n\r\t")
DEEP, ODD = 64, 2
"""Objects and lists in each other that are read; lines with more are left to Python, as are other odd ones."""


@compiled
def _write_character(out: Any, n: int, code: int) -> int:
    """Write a character behind `n`; the new end."""
    if code < 0x80:
        out[n] = code
        return n + 1
    more = 1 + (code >= 0x800) + (code >= 0x10000)  # bytes behind the first
    out[n] = 0xFF00 >> more + 1 & 0xFF | code >> 6 * more
    for k in range(1, more + 1):
        out[n + k] = 0x80 | code >> 6 * (more - k) & 63
    return n + more + 1


@compiled
def _read_character(raw: Any, i: int, end: int) -> tuple[int, int]:
    """The character of UTF-8 that begins at byte `i`, and the byte behind it; -1 and the next byte where none does."""
    byte = np.int64(raw[i])
    if byte < 0x80:
        return byte, i + 1
    more = (byte >= 0xC2) + (byte >= 0xE0) + (byte >= 0xF0)  # bytes behind the first
    if more == 0 or byte > 0xF4 or i + more >= end:
        return -1, i + 1
    code = byte & 0x3F >> more
    for k in range(i + 1, i + more + 1):
        if raw[k] & 0xC0 != 0x80:
            return -1, i + 1
        code = code << 6 | np.int64(raw[k]) & 63
    # shorter, half of a pair, beyond all
    if code < 1 << 5 * more + 1 or 0xD800 <= code < 0xE000 or code >= 0x110000:
        return -1, i + 1
    return code, i + more + 1


@compiled
def _write_accent(out: Any, n: int, code: int, orders: Any, first: int) -> int:
    """Write an accent among those from `first` on, in the order of their classes; the new end."""
    place, order = n, orders[code]
    while place > first:
        before = place - 1
        while out[before] & 0xC0 == 0x80:
            before -= 1
        if orders[_read_character(out, before, n)[0]] <= order:
            break
        place = before
    size = _write_character(out, n, code) - n
    for k in range(n - 1, place - 1, -1):
        out[k + size] = out[k]
    _write_character(out, place, code)
    return n + size


@compiled
def _write_letters(
    out: Any, n: int, code: int, codes: Any, letters: Any, orders: Any, first: int, marks: int
) -> tuple[int, int, int]:
    """Write what stays of a character behind `n`; the new end, where the accents behind its last letter begin, and how
    many these are."""
    if code < 0 or code >= len(codes) or codes[code] == 0:
        return n, first, marks
    kind = np.int64(codes[code])
    if kind == 1:
        n = _write_character(out, n, code)
        return n, n, 0
    number, place = (1, 0) if kind == 2 else (kind & 31, kind >> 5)
    for k in range(number):
        one = code if kind == 2 else np.int64(letters[place + k])
        if orders[one] == 0:
            n = _write_character(out, n, one)
            first, marks = n, 0
            continue
        if one == 0x307 and marks == 0 and n and out[n - 1] == 105:
            continue  # İ has a dot in lower case as well
        if marks == MARKS:
            first, marks = n, 0
        n = _write_accent(out, n, one, orders, first)
        marks += 1
    return n, first, marks


@compiled
def _read_number(raw: Any, i: int, end: int, base: int, most: int) -> tuple[int, int]:
    """The number of up to so many digits from `i` on, and the byte behind it."""
    value, last = np.int64(0), min(end, i + most)
    while i < last:
        lower = np.int64(raw[i]) | 32
        is_number = lower < 97
        digit = np.int64(raw[i]) - 48 if is_number else lower - 87
        if not 0 <= digit < (10 if is_number else base):
            break
        value, i = value * base + digit, i + 1
    return value, i


@compiled
def _read_hexadecimal(raw: Any, i: int, end: int) -> int:
    """The number of four hexadecimal digits, -1 where there are none."""
    value, behind = _read_number(raw, i, end, 16, 4)
    return value if behind == i + 4 else -1


@compiled
def _is_letter(byte: int) -> bool:
    """Whether it is a letter of ASCII."""
    return 97 <= byte | 32 <= 122


@compiled
def _skip_slashes(raw: Any, i: int, end: int) -> int:
    """Behind the backslashes from `i` on."""
    while i < end and raw[i] == 92:
        i += 1
    return i


@compiled
def _skip_and(raw: Any, i: int, end: int) -> int:
    """Behind all `amp;` from `i` on."""
    while i + 4 <= end and raw[i] == 97 and raw[i + 1] == 109 and raw[i + 2] == 112 and raw[i + 3] == 59:
        i += 4
    return i


@compiled
def _skip_sign(raw: Any, i: int, end: int, sign: int) -> int:
    """Behind a `<` (60) or `>` (62) that stands at `i` in any of its forms, -1 where none does."""
    if raw[i] == sign:
        return i + 1
    if raw[i] == 92:
        i = _skip_slashes(raw, i, end)
        if i + 5 > end or raw[i] != 117:
            return -1
        code = _read_hexadecimal(raw, i + 1, end)
        if code == sign:
            return i + 5
        if code != 38:
            return -1
        i += 4
    elif raw[i] != 38:
        return -1
    i = _skip_and(raw, i + 1, end)
    if i + 3 <= end and raw[i] == (108 if sign == 60 else 103) and raw[i + 1] == 116 and raw[i + 2] == 59:
        return i + 3
    return -1


@compiled
def _skip_tag(raw: Any, i: int, end: int) -> int:
    """Behind the tag whose `<` ends before `i`, -1 where there is none."""
    slash = _skip_slashes(raw, i, end)
    if slash < end and raw[slash] == 47:
        i = slash + 1
    elif i + 2 < end and raw[i] == 33 and raw[i + 1] == 45 and raw[i + 2] == 45:
        i += 2
    elif i < end and (raw[i] == 63 or raw[i] == 33):
        i += 1
    if i >= end or not (_is_letter(raw[i]) or (raw[i] == 45 and raw[i - 1] == 45)):
        return -1
    i += 1
    last = min(end, i + TAG + 1)
    while i < last:
        if raw[i] == 60 or raw[i] == 62 or raw[i] == 38 or raw[i] == 92:
            behind = _skip_sign(raw, i, end, 62)
            if behind >= 0:
                return behind
            if _skip_sign(raw, i, end, 60) >= 0:
                return -1
        i = _skip_slashes(raw, i, end) if raw[i] == 92 else i + 1
    return -1


@compiled
def _skip_number(raw: Any, i: int, end: int) -> int:
    """Behind the number of a line that begins at `i`; `i` where there is none."""
    at = i
    while at < end and (raw[at] == 32 or raw[at] == 9 or raw[at] == 92):
        if raw[at] == 92:
            at = _skip_slashes(raw, at, end)
            if at >= end or raw[at] != 116:
                return i
        at += 1
    if at < end and (raw[at] == 40 or raw[at] == 91):
        at += 1
    digits = at
    _, at = _read_number(raw, at, end, 10, 6)
    if at == digits or at >= end or raw[at] not in (46, 41, 58, 93, 124):
        return i
    return i if at + 1 < end and 48 <= raw[at + 1] <= 57 else at + 1


@compiled
def _read_entity(raw: Any, i: int, end: int, names: Any) -> tuple[int, int, int]:
    """The entity whose `&` ends before `i`: its character, -1 where it has none, or its place in `names`, -1 where it
    is none of these; and the byte behind it, `i` where there is none."""
    if i < end and raw[i] == 35:
        at, base, most = i + 1, 10, 7
        if at < end and raw[at] | 32 == 120:
            at, base, most = at + 1, 16, 6
        digits = at
        code, at = _read_number(raw, at, end, base, most)
        if at > digits and at < end and raw[at] == 59:
            return (code if code < 0x110000 and not 0xD800 <= code < 0xE000 else -1), -1, at + 1
        return -1, -1, i
    name, at = BASIS, i  # no name begins with a digit
    while at < end and at - i < 32 and (_is_letter(raw[at]) or 48 <= raw[at] <= 57):
        name = (name ^ np.uint64(raw[at])) * PRIME
        at += 1
    if at - i >= 2 and at < end and raw[at] == 59:
        place = np.searchsorted(names, name)
        if place < len(names) and names[place] == name:
            return -1, place, at + 1
    return -1, -1, i


@compiled
def fold(
    raw: Any, places: Any, escaped: Any, left: int, heads: Any, sizes: Any, rule: Any, exact: bool, spaced: bool,
    out: Any, spans: Any,
) -> int:  # fmt: skip
    """Fold strings into `out` by the rule (`_forms`), one behind the other; the end, or -1 where the room is too small.
    Where `sizes` of a string is no -1, a gap and so many bytes of `heads` come before it. `left` bytes are needed at
    least."""
    plain, pairs, codes, letters, orders, names, meanings = rule
    n = head = 0
    for v in range(len(places)):
        if sizes[v] >= 0:
            out[n] = GAP
            n += 1
            out[n : n + sizes[v]] = heads[head : head + sizes[v]]
            n += sizes[v]
            head += sizes[v]
            left -= sizes[v] + 1
        i, end = places[v, 0], places[v, 1]
        left -= end - i
        spans[v, 0] = n
        if exact:
            n = _copy_string(raw, i, end, escaped[v], out, n)
            spans[v, 1] = n
            continue
        first, marks, closed = n, 0, n  # accents come behind `first` as long as the end is `closed`
        i = _skip_number(raw, i, end)
        if spaced and i > places[v, 0]:
            out[n] = 32
            n += 1
        while i < end:
            while i + 8 <= end:
                word = _load(raw, i)
                one, two = pairs[word & _PAIR], pairs[word >> np.uint64(16) & _PAIR]
                three, four = pairs[word >> np.uint64(32) & _PAIR], pairs[word >> np.uint64(48)]
                if (one | two | three | four) >> 31:
                    break
                for pair in (one, two, three, four):
                    out[np.uint64(n)], out[np.uint64(n + 1)] = np.uint8(pair), np.uint8(pair >> 8)
                    n += np.int64(pair >> 16)
                i += 8
            while i < end:
                sign = plain[raw[i]]
                if sign >= 0x80:
                    if raw[i] != 92 or spaced or i + 2 >= end:
                        break
                    if raw[i + 1] == 110 and _is_letter(raw[i + 2]):  # the end of a line of JSON, as most
                        i += 2
                        continue
                    if raw[i + 1] != 34:
                        break
                    i += 2
                    continue
                out[n] = sign
                n += sign != 0
                i += 1
                if sign == 0 and i + 8 <= end:
                    break
            if i < end and plain[raw[i]] < 0x80:
                continue
            if i >= end:
                break
            if n != closed:
                first, marks = n, 0
            code, blank, tag = np.int64(-1), False, -1
            if raw[i] >= 0x80:
                code, i = _read_character(raw, i, end)
            elif raw[i] == 10:
                i, blank = _skip_number(raw, i + 1, end), True
            elif raw[i] == 60:
                tag = i + 1
            else:
                sign, slashes = -1, raw[i] == 92
                if slashes:
                    i = _skip_slashes(raw, i, end)
                    byte = raw[i] if i < end else 0
                    if byte == 110:
                        i, blank = _skip_number(raw, i + 1, end), True
                    elif byte in (98, 102, 114, 116):
                        i, blank = i + 1, True
                    elif byte == 117:
                        sign = _read_hexadecimal(raw, i + 1, end)
                        i = i + 5 if sign >= 0 else i
                else:
                    sign, i = 38, i + 1
                if sign == 38:
                    i = _skip_and(raw, i, end)
                    if i + 3 <= end and raw[i] == 108 and raw[i + 1] == 116 and raw[i + 2] == 59:
                        tag = i + 3
                    else:
                        code, name, i = _read_entity(raw, i, end, names)
                        if name >= 0:
                            n, first, marks = _write_letters(
                                out, n, np.int64(meanings[name, 0]), codes, letters, orders, first, marks
                            )
                            code = np.int64(meanings[name, 1])  # or 0, of which nothing stays
                elif sign == 60:
                    tag = i
                elif sign >= 0:
                    code = sign
                    if 0xD800 <= code < 0xE000:
                        code = np.int64(-1)
                        low = _skip_slashes(raw, i, end)
                        if sign < 0xDC00 and low > i and low < end and raw[low] == 117:
                            second = _read_hexadecimal(raw, low + 1, end)
                            if 0xDC00 <= second < 0xE000:
                                code = 0x10000 + ((sign - 0xD800) << 10) + (second - 0xDC00)
                                i = low + 5
            if tag >= 0:
                i = _skip_tag(raw, tag, end)
                blank = i >= 0
                i = i if blank else tag
            n, first, marks = _write_letters(out, n, code, codes, letters, orders, first, marks)
            if spaced and blank:
                out[n] = 32
                n += 1
                first, marks = n, 0
            closed = n
            if n + left + (end - i) + 64 > len(out):
                return -1
        spans[v, 1] = n
    out[n : n + BLOCK] = GAP
    return n + BLOCK


@compiled
def _copy_string(raw: Any, i: int, end: int, escaped: bool, out: Any, n: int) -> int:
    """Copy a string as it stands, without the escapes of JSON where it has them; the new end."""
    while i < end:
        byte = raw[i]
        i += 1
        if byte == 92 and escaped and i < end:
            byte = raw[i]
            i += 1
            if byte == 117:
                code = _read_hexadecimal(raw, i, end)
                i += 4
                if 0xD800 <= code < 0xDC00 and i + 6 <= end and raw[i] == 92 and raw[i + 1] == 117:
                    low = _read_hexadecimal(raw, i + 2, end)
                    if 0xDC00 <= low < 0xE000:
                        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                        i += 6
                n = _write_character(out, n, max(code, 0))
                continue
            byte = _MEANT[byte]
        out[n] = 63 if byte == GAP else byte
        n += 1
    return n


@compiled
def _skip_string(raw: Any, i: int, end: int) -> int:
    """Behind the quote that closes a string whose content begins at `i`; -1 where none does."""
    while i + 8 <= end:
        word = _load(raw, i)
        low = word & _SEVEN
        odd = (~((low ^ _QUOTES) + _SEVEN) | ~((low ^ _BACKSLASHES) + _SEVEN)) & ~word & _TOPS
        if odd == 0:
            i += 8
            continue
        while odd & np.uint64(0xFF) == 0:
            odd >>= np.uint64(8)
            i += 1
        if raw[i] == 34:
            return i + 1
        i += 2
    while i < end:
        if raw[i] == 34:
            return i + 1
        i += 2 if raw[i] == 92 else 1
    return -1


@compiled
def find_strings(raw: Any, lines: Any, wanted: Any, places: Any, columns: Any, rows: Any, kinds: Any) -> int:
    """The strings of the JSON of each line, nested ones as well; how many. A column is the hash of the keys that lead
    to a string; where some are `wanted`, the first key is one of these. `kinds` are 0 for a line of white space, `ODD`
    for one that must be read in another way, else 1."""
    n = 0
    names, current = np.zeros(DEEP + 1, dtype=np.uint64), np.zeros(DEEP + 1, dtype=np.uint64)
    taken = np.zeros(DEEP + 1, dtype=np.bool_)
    # 0 in a list, 1 behind a key of an object, 2 where one may begin
    state = np.zeros(DEEP + 1, dtype=np.int64)
    for line in range(len(lines)):
        i, end = lines[line, 0], lines[line, 1]
        while end > i and raw[end - 1] <= 32:
            end -= 1
        while i < end and raw[i] <= 32:
            i += 1
        if i >= end:
            continue
        begin, good, depth, ended = n, True, 0, False
        state[0], current[0], taken[0] = 0, np.uint64(0), len(wanted) == 0
        while good and i < end:
            c = raw[i]
            if ended and c > 32:
                good = False
            elif c == 34:
                inside = i + 1
                i = _skip_string(raw, inside, end)
                if i < 0:
                    good = False
                elif state[depth] == 2:
                    state[depth] = 1
                    name = names[depth] if names[depth] else BASIS
                    for k in range(inside, i - 1):
                        name = (name ^ np.uint64(raw[k])) * PRIME
                    current[depth] = name
                    if len(wanted) and not names[depth]:
                        taken[depth] = np.any(wanted == name)
                    while i < end and raw[i] <= 32:
                        i += 1
                    good = i < end and raw[i] == 58
                    i += 1
                else:
                    if taken[depth]:
                        places[n, 0], places[n, 1] = inside, i - 1
                        columns[n], rows[n] = current[depth], line
                        n += 1
                    ended = depth == 0
            elif c == 123 or c == 91:
                if depth == DEEP:
                    good = False
                    break
                depth += 1
                names[depth] = current[depth] = current[depth - 1]
                taken[depth] = taken[depth - 1]
                state[depth] = 2 * (c == 123)
                i += 1
            elif c == 125 or c == 93:
                good = depth > 0 and (state[depth] > 0) == (c == 125)
                depth -= 1
                ended = depth == 0
                i += 1
            elif c == 44:
                state[depth] = min(2, 2 * state[depth])
                i += 1
            else:
                i += 1
        kinds[line] = 1
        if not good or depth != 0:
            kinds[line] = ODD
            n = begin
    return n


@compiled
def hash_words(buffer: Any, spans: Any) -> tuple[Any, Any]:
    """The hash of each word of some documents, and the number of its document."""
    most = len(buffer) // 2 + 1
    n, found, owners = 0, np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.int64)
    for document in range(len(spans)):
        number, inside = BASIS, False
        for i in range(spans[document, 0], spans[document, 1] + 1):
            if buffer[i] != SPACE and buffer[i] != GAP:  # which is the byte behind a document
                number, inside = (number ^ np.uint64(buffer[i])) * PRIME, True
            elif inside:
                found[n], owners[n] = _mix(number), document
                n += 1
                number, inside = BASIS, False
    return found[:n], owners[:n]


@compiled
def _agree(buffer: Any, place: int, texts: Any, there: int) -> bool:
    """Whether both hold the same block at these places."""
    same = True
    for k in range(0, BLOCK, 8):
        same = same and _load(buffer, place + k) == _load(texts, there + k)
    return same


@compiled
def follow_blocks(
    buffer: Any, places: Any, found: Any, strings: Any, owners: Any, begin: int, texts: Any, first: Any,
    there_of: Any, repeats: Any, seen: Any, same: Any, recent: Any, reached: Any, rows: Any,
) -> tuple[int, int]:  # fmt: skip
    """Follow blocks to both sides as far as buffer and text agree, from block `begin` on, into `rows`: string, first
    and last byte among all texts, place in the buffer, characters. How many rows, and the block to go on with where
    there is no more room. A block that more than `COMMON` documents hold is not followed; `seen` says how many do, and
    the last one. Parts of characters at the ends of a run are left away. A run that is among the `recent` ones of the
    string, elsewhere in it, gives no second row: the first one gets the earlier place. `same` remembers which blocks
    were followed: a run is from its first one alone. Of a block that a text repeats, `reached` says how far the buffer
    was followed from a place: up to there it is not followed from it again."""
    number, i = 0, begin
    while i < len(places):
        place, key, document = places[i], found[i], owners[i]
        usual = seen[key, 0] + (seen[key, 1] != document) <= COMMON
        if usual and number + first[key + 1] - first[key] > len(rows):
            return number, i
        k = i
        while k > 0 and places[k] > place - BLOCK:
            k -= 1
        before = places[k] == place - BLOCK and same[k]
        for j in range(first[key], first[key + 1] if usual else first[key]):
            there = int(there_of[j])
            if not _agree(buffer, place, texts, there):
                continue
            same[i] = True
            if before and there >= BLOCK and _agree(buffer, place - BLOCK, texts, there - BLOCK):
                continue  # the block before it was followed
            slot = there % len(reached)
            if repeats[key] and reached[slot, 0] == there and place < reached[slot, 1]:
                continue
            back, on, most = 0, BLOCK, min(place, there)
            while back < most and buffer[place - back - 1] == texts[there - back - 1] != GAP:
                back += 1
            while buffer[place + on] == texts[there + on] != GAP:
                on += 1
            if repeats[key]:
                reached[slot, 0], reached[slot, 1] = there, place + on
            if back + on < SHORT:
                continue
            start, end = there - back, there + on
            while start < end and texts[start] & 0xC0 == 0x80:
                start += 1
            while end > start and texts[end] & 0xC0 == 0x80:
                end -= 1
            at = place + start - there
            slot = (start * 31 + end * 17) % len(recent)
            k = recent[slot]
            if k < number and rows[k, 0] == strings[i] and rows[k, 1] == start and rows[k, 2] == end:
                rows[k, 3] = min(rows[k, 3], at)
                continue
            characters = 0
            for k in range(start, end):
                characters += texts[k] & 0xC0 != 0x80
            if characters < SHORT:
                continue
            recent[slot] = number
            rows[number] = strings[i], start, end, at, characters
            number += 1
        if seen[key, 1] != document:
            seen[key, 0] += 1
            seen[key, 1] = document
        i += 1
    return number, i


@compiled
def _mix(h: Any) -> Any:
    """A number of 64 bits with each of its bits spread over all."""
    for factor in (_BY, _AGAIN):
        h ^= h >> np.uint64(32)
        h *= factor
    return h ^ h >> np.uint64(29)


@compiled
def hash_blocks(buffer: Any, places: Any) -> Any:
    """The hashes of the blocks at these places of a buffer. Each of a block's three words is mixed before the next one
    is added, or words that differ in a few bytes would cancel each other. What agrees is compared byte by byte."""
    out = np.empty(len(places), dtype=np.uint64)
    for k, place in enumerate(places):
        h = _mix(_mix(_load(buffer, place)) + _load(buffer, place + 8))
        out[k] = _mix(h + _load(buffer, place + 16))
    return out


@compiled
def _bloom_bits(h: Any) -> Any:
    """The three bits that a hash sets in a word of the bit map (a Bloom filter whose bits lie in one word)."""
    one, low = np.uint64(1), np.uint64(63)
    return one << (h & low) | one << (h >> np.uint64(6) & low) | one << (h >> np.uint64(12) & low)


@compiled
def set_bits(hashes: Any, shift: Any, bitmap: Any) -> None:
    """Set the bits of hashes in a bit map whose word they say by their first bits."""
    for h in hashes:
        bitmap[np.int64(h >> shift)] |= _bloom_bits(h)


@compiled
def find(hashes: Any, table: Any) -> tuple[Any, Any]:
    """Which of some hashes are keys of a `HashTable`, and which. The bit map says nearly always no."""
    at, found = np.empty(len(hashes), dtype=np.int64), np.empty(len(hashes), dtype=np.int64)
    keys, _, bitmap, shift, buckets = table
    n = kept = 0
    for k in range(len(hashes)):
        at[n] = k
        sign = _bloom_bits(hashes[k])
        # no branch: the processor could not foresee it
        n += bitmap[np.int64(hashes[k] >> shift)] & sign == sign
    for k in at[:n]:
        bucket = np.int64(hashes[k] >> shift)
        for key in range(buckets[bucket], buckets[bucket + 1]):
            if keys[key] == hashes[k]:
                at[kept], found[kept] = k, key
                kept += 1
                break
    return at[:kept], found[:kept]
