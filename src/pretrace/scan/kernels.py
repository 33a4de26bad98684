"""The loops over bytes that numba compiles; imported only where numba is there, kept compiled beside the package.

Each has a counterpart of numpy in `folding` and `searching` that gives the same to the bit.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as untyped_intrinsic
from numba.np.arrayobj import make_array as untyped_make_array

from pretrace.scan.folding import BLOCK, GAP
from pretrace.scan.searching import followed as _followed

_intrinsic: Any = untyped_intrinsic
_make_array: Any = untyped_make_array
compiled: Any = numba.njit(nogil=True, cache=True)
followed = compiled(_followed)


@compiled
def put(out: Any, n: int, code: int, spaced: bool) -> tuple[int, bool]:
    """Write a folded character behind `n`; the new end, and whether it was a space."""
    if code == 32:
        if spaced:
            return n, True
        out[n] = 32
        return n + 1, True
    if code < 0x80:
        out[n] = code
        return n + 1, False
    if code < 0x800:
        out[n] = 0xC0 | code >> 6
        out[n + 1] = 0x80 | code & 63
        return n + 2, False
    if code < 0x10000:
        out[n] = 0xE0 | code >> 12
        out[n + 1] = 0x80 | code >> 6 & 63
        out[n + 2] = 0x80 | code & 63
        return n + 3, False
    out[n] = 0xF0 | code >> 18
    out[n + 1] = 0x80 | code >> 12 & 63
    out[n + 2] = 0x80 | code >> 6 & 63
    out[n + 3] = 0x80 | code & 63
    return n + 4, False


@compiled
def letter(raw: Any, i: int, end: int, table: Any, out: Any, n: int, spaced: bool) -> tuple[int, int, bool]:
    """Fold the character that begins at byte `i` of UTF-8 and is not of ASCII, or copy the byte where none begins; the
    new end of `out`, the next byte, and whether it was a space."""
    byte = np.int64(raw[i])
    if 0xC2 <= byte <= 0xDF and i + 1 < end and raw[i + 1] & 0xC0 == 0x80:
        code = table[(byte & 31) << 6 | np.int64(raw[i + 1]) & 63]
        n, spaced = put(out, n, np.int64(code), spaced)
        return n, i + 2, spaced
    following = i + 2 < end and raw[i + 1] & 0xC0 == 0x80 and raw[i + 2] & 0xC0 == 0x80
    if (
        0xE0 <= byte <= 0xEF and following and (byte > 0xE0 or raw[i + 1] >= 0xA0)
    ):  # none in more bytes than it takes
        code = table[(byte & 15) << 12 | (np.int64(raw[i + 1]) & 63) << 6 | np.int64(raw[i + 2]) & 63]
        n, spaced = put(out, n, np.int64(code), spaced)
        return n, i + 3, spaced
    out[n] = raw[i]
    return n + 1, i + 1, False


@compiled
def close(out: Any, n: int) -> int:
    """Gaps up to the next multiple of a block, one at least."""
    end = (n // BLOCK + 1) * BLOCK
    out[n:end] = GAP
    return end


@_intrinsic
def load(_typing: Any, array: Any, place: Any) -> Any:
    """The 8 bytes of an array from a place on as one number, wherever they lie."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _make_array(signature.args[0])(context, builder, arguments[0]).data
        there = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(there, align=1)

    return types.uint64(array, types.int64), made


@_intrinsic
def store(_typing: Any, array: Any, place: Any, number: Any) -> Any:
    """Write a number as 8 bytes of an array."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _make_array(signature.args[0])(context, builder, arguments[0]).data
        there = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], there, align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), made


@_intrinsic
def prefetch(_typing: Any, array: Any, place: Any) -> Any:
    """Ask the processor to bring an item of an array near, and do not wait for it."""

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _make_array(signature.args[0])(context, builder, arguments[0]).data
        there = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [there.type, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [there.type], kind)
        builder.call(call, [there, number(0), number(3), number(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), made


EACH = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
SPACES, QUOTES, BACKSLASHES = (EACH * np.uint64(ord(sign)) for sign in ' "\\')
_BELOW_SPACE = EACH * np.uint64(0x80 - 0x20)
FROM_A, BEHIND_Z = EACH * np.uint64(0x80 - ord("A")), EACH * np.uint64(0x80 - ord("Z") - 1)


@compiled
def plainly(raw: Any, i: int, end: int, out: Any, n: int, spaced: bool, json: bool) -> tuple[int, int, bool]:
    """Fold 8 bytes at a time up to the first that needs a closer look: no ASCII, a control character, a space behind
    another one, in JSON a quote or a backslash. The next byte, the new end, and whether the last one was a space."""
    while i + 8 <= end:
        word = load(raw, i)
        low = word & _SEVEN
        space = ~((low ^ SPACES) + _SEVEN) & _TOPS
        before = space << np.uint64(8) | (np.uint64(0x80) if spaced else np.uint64(0))
        odd = (word | ~(low + _BELOW_SPACE)) & _TOPS | space & before
        if json:
            odd |= (~((low ^ QUOTES) + _SEVEN) | ~((low ^ BACKSLASHES) + _SEVEN)) & _TOPS
        capital = (low + FROM_A) & ~(low + BEHIND_Z) & _TOPS
        store(out, n, word | capital >> np.uint64(2))
        if odd == 0:
            n, i, spaced = n + 8, i + 8, space >> np.uint64(63) != 0
            continue
        while odd & np.uint64(0xFF) == 0:
            spaced = space & np.uint64(0x80) != 0
            odd, space = odd >> np.uint64(8), space >> np.uint64(8)
            n, i = n + 1, i + 1
        break
    return n, i, spaced


@compiled
def fold(joined: Any, table: Any, plain: Any, exact: bool, out: Any, spans: Any) -> int:
    """Documents that end with a gap each, folded into `out` at multiples of a block; the end. `plain` is what a byte
    becomes that stands alone, 0 for one that does not."""
    n, start, document, spaced, i = 0, 0, 0, False, 0
    size = len(joined)
    while i < size:
        if not exact:
            n, i, spaced = plainly(joined, i, size, out, n, spaced, False)
            if i >= size:
                break
        byte = joined[i]
        value = plain[byte]
        if value != 0:
            out[n] = value
            space = value == 32
            n += 1 - (space & spaced)
            spaced = space
            i += 1
        elif byte == GAP:
            spans[document, 0], spans[document, 1] = start, n
            document += 1
            n = close(out, n)
            start, spaced, i = n, False, i + 1
        elif exact:
            out[n] = byte
            n, i = n + 1, i + 1
        else:
            n, i, spaced = letter(joined, i, size, table, out, n, spaced)
    out[n : n + BLOCK] = GAP
    return n + BLOCK


@compiled
def hexadecimal(raw: Any, i: int) -> int:
    """The number of four hexadecimal digits, -1 where there are none."""
    value = 0
    for k in range(4):
        c = raw[i + k]
        if 48 <= c <= 57:
            digit = c - 48
        elif 97 <= c <= 102:
            digit = c - 87
        elif 65 <= c <= 70:
            digit = c - 55
        else:
            return -1
        value = value * 16 + np.int64(digit)
    return value


@compiled
def after_string(raw: Any, i: int, end: int) -> int:
    """Behind the quote that closes a string whose content begins at `i`; -1 where none does."""
    while i < end:
        if raw[i] == 92:
            i += 2
        elif raw[i] == 34:
            return i + 1
        else:
            i += 1
    return -1


@compiled
def lines(
    raw: Any, starts: Any, key: Any, table: Any, plain: Any, exact: bool, out: Any, spans: Any, irregular: Any,
    inside_raw: Any,
) -> int:  # fmt: skip
    """The string under `key` at the top of the object of each line, folded into `out`. Lines that are anything
    else than an object with such a string are marked in `irregular`, and have an empty span. `inside_raw` says where
    the string begins and ends in `raw`."""
    n = 0
    for line in range(len(starts) - 1):
        i, end = starts[line], starts[line + 1]
        while end > i and (raw[end - 1] <= 32):
            end -= 1
        while i < end and raw[i] <= 32:
            i += 1
        begin, found, good = n, False, end - i >= 2 and raw[i] == 123 and raw[end - 1] == 125
        depth, wants = 0, False  # wants: the next string at depth 1 is a key
        while good and i < end:
            c = raw[i]
            if c == 34:
                inside = i + 1
                behind = after_string(raw, inside, end)
                if behind < 0:
                    good = False
                    break
                i = behind
                if depth != 1 or not wants:
                    continue
                wants = False
                while i < end and raw[i] <= 32:
                    i += 1
                if i >= end or raw[i] != 58:
                    good = False
                    break
                i += 1
                same = behind - 1 - inside == len(key)
                for k in range(len(key)):
                    if not same:
                        break
                    same = raw[inside + k] == key[k]
                if not same:
                    continue
                while i < end and raw[i] <= 32:
                    i += 1
                if found or i >= end or raw[i] != 34:
                    good = False  # no string, or the key a second time
                    break
                found, spaced = True, False
                i += 1
                inside_raw[line, 0] = i
                while i < end:
                    if not exact:
                        n, i, spaced = plainly(raw, i, end, out, n, spaced, True)
                        if i >= end:
                            break
                    c = raw[i]
                    value = plain[c]
                    if value != 0:
                        out[n] = value
                        space = value == 32
                        n += 1 - (space & spaced)
                        spaced = space
                        i += 1
                        continue
                    if c == 34:
                        break
                    if c == 92:
                        i += 1
                        if i >= end:
                            break
                        c = raw[i]
                        i += 1
                        if c == 110 or c == 114 or c == 116 or c == 98 or c == 102:
                            code = np.int64(10)
                            if c == 114:
                                code = np.int64(13)
                            elif c == 116:
                                code = np.int64(9)
                            elif c == 98:
                                code = np.int64(8)
                            elif c == 102:
                                code = np.int64(12)
                        elif c == 34 or c == 92 or c == 47:
                            code = np.int64(c)
                        elif c == 117 and i + 4 <= end:
                            code = hexadecimal(raw, i)
                            i += 4
                            if (
                                0xD800 <= code < 0xDC00
                                and i + 6 <= end
                                and raw[i] == 92
                                and raw[i + 1] == 117
                            ):
                                low = hexadecimal(raw, i + 2)
                                if 0xDC00 <= low < 0xE000:
                                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                                    i += 6
                            if code < 0:
                                good = False
                                break
                        else:
                            good = False
                            break
                        if exact:
                            n, spaced = put(out, n, code, False)
                        else:
                            if code < 0x10000:
                                code = np.int64(table[code])
                            n, spaced = put(out, n, code, spaced)
                    else:
                        if c == GAP:
                            good = False  # no UTF-8
                            break
                        if exact:
                            out[n] = c
                            n, spaced, i = n + 1, False, i + 1
                        else:
                            n, i, spaced = letter(raw, i, end, table, out, n, spaced)
                inside_raw[line, 1] = i
                i += 1
            elif c == 123 or c == 91:
                depth += 1
                wants = c == 123 if depth == 1 else wants
                i += 1
            elif c == 125 or c == 93:
                depth -= 1
                i += 1
                if depth == 0 and i < end:
                    good = False
            elif c == 44:
                wants = wants or depth == 1
                i += 1
            else:
                i += 1
        if not (good and found and depth == 0 and i <= end):
            irregular[line] = True
            n = begin
        spans[line, 0], spans[line, 1] = begin, n
        if n > begin:
            n = close(out, n)
    out[n : n + BLOCK] = GAP
    return n + BLOCK


@compiled
def words(buffer: Any, spans: Any, kinds: Any, factor: Any, found: Any, owners: Any) -> int:
    """The bytes of each word of some documents, weighted by the powers of `factor`, and the number of its document; how
    many words. `kinds` says of a byte whether it belongs to a word (0), ends one (1) or is left out (2)."""
    n = 0
    for document in range(len(spans)):
        number, power, inside = np.uint64(0), np.uint64(1), False
        for i in range(spans[document, 0], spans[document, 1]):
            kind = kinds[buffer[i]]
            if kind == 0:
                number += (np.uint64(buffer[i]) + np.uint64(1)) * power
                power *= factor
                inside = True
            elif kind == 1 and inside:
                found[n] = number
                owners[n] = document
                n += 1
                number, power, inside = np.uint64(0), np.uint64(1), False
        if inside:
            found[n] = number
            owners[n] = document
            n += 1
    return n


AHEAD, AT_ONCE = 512, 8
"""Blocks that are hashed before the bit map is asked, and places of a block that are brought from memory early."""


@compiled
def probe(
    words: Any, every: int, bitmap: Any, shift: Any, factors: Any, keys: Any, buckets: Any,
    places: Any, hashes: Any, found: Any,
) -> int:  # fmt: skip
    """The blocks at every `every`-th word of 8 bytes that have a key, and its number; how many there are. The bit map
    says nearly always no; `buckets` say where the keys of one of its words begin."""
    n = 0
    one, low = np.uint64(1), np.uint64(63)
    by, again = factors[0], factors[1]
    ahead = np.empty(AHEAD, dtype=np.uint64)
    total = (len(words) - 3) // every + 1 if len(words) >= 3 else 0
    for begin in range(0, total, AHEAD):
        some = min(AHEAD, total - begin)
        for k in range(some):  # the bit map's words come from memory while the next hashes are made
            i = (begin + k) * every
            h = np.uint64(0)
            for word in range(3):
                h += words[i + word]
                h ^= h >> np.uint64(32)
                h *= by
                h ^= h >> np.uint64(32)
                h *= again
                h ^= h >> np.uint64(29)
            ahead[k] = h
            prefetch(bitmap, np.int64(h >> shift))
        for k in range(some):
            h = ahead[k]
            sign = one << (h & low) | one << (h >> np.uint64(6) & low) | one << (h >> np.uint64(12) & low)
            places[n] = (begin + k) * every
            hashes[n] = h
            n += bitmap[np.int64(h >> shift)] & sign == sign  # no branch: the processor could not foresee it
    kept = 0
    for k in range(n):
        h = hashes[k]
        bucket = np.int64(h >> shift)
        for key in range(buckets[bucket], buckets[bucket + 1]):
            if keys[key] == h:
                places[kept] = places[k]
                found[kept] = key
                kept += 1
                break
    return kept


@compiled
def bring(found: Any, first: Any, places: Any, texts: Any, seen: Any) -> None:
    """Ask for what will be looked up of keys that were found: how often they were seen, and their blocks in the texts,
    the first `AT_ONCE` of each."""
    for key in found:
        prefetch(first, key)
        prefetch(seen, 2 * key)
    for key in found:
        prefetch(places, np.int64(first[key]))
    for key in found:
        begin = np.int64(first[key])
        for j in range(begin, min(np.int64(first[key + 1]), begin + AT_ONCE)):
            prefetch(texts, np.int64(places[j]))
