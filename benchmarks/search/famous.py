"""Beginnings of texts that everyone has, all in the public domain, and control texts from our own docs."""

from __future__ import annotations

import re

from benchmarks import ROOT
from pretrace.types import Corpus, Text

FAMOUS = {
    "Genesis 1": (
        "In the beginning God created the heaven and the earth. And the earth was without form, and void; and "
        "darkness was upon the face of the deep. And the Spirit of God moved upon the face of the waters. And "
        "God said, Let there be light: and there was light. And God saw the light, that it was good: and God "
        "divided the light from the darkness. And God called the light Day, and the darkness he called Night. "
        "And the evening and the morning were the first day. And God said, Let there be a firmament in the "
        "midst of the waters, and let it divide the waters from the waters."
    ),
    "Psalm 23": (
        "The Lord is my shepherd; I shall not want. He maketh me to lie down in green pastures: he leadeth me "
        "beside the still waters. He restoreth my soul: he leadeth me in the paths of righteousness for his "
        "name's sake. Yea, though I walk through the valley of the shadow of death, I will fear no evil: for "
        "thou art with me; thy rod and thy staff they comfort me. Thou preparest a table before me in the "
        "presence of mine enemies: thou anointest my head with oil; my cup runneth over."
    ),
    "Gettysburg": (
        "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived "
        "in Liberty, and dedicated to the proposition that all men are created equal. Now we are engaged in a "
        "great civil war, testing whether that nation, or any nation so conceived and so dedicated, can long "
        "endure. We are met on a great battle-field of that war. We have come to dedicate a portion of that "
        "field, as a final resting place for those who here gave their lives that that nation might live. It "
        "is altogether fitting and proper that we should do this."
    ),
    "Declaration": (
        "We hold these truths to be self-evident, that all men are created equal, that they are endowed by "
        "their Creator with certain unalienable Rights, that among these are Life, Liberty and the pursuit of "
        "Happiness. That to secure these rights, Governments are instituted among Men, deriving their just "
        "powers from the consent of the governed, That whenever any Form of Government becomes destructive of "
        "these ends, it is the Right of the People to alter or to abolish it, and to institute new "
        "Government, laying its foundation on such principles and organizing its powers in such form."
    ),
    "Hamlet": (
        "To be, or not to be, that is the question: Whether 'tis nobler in the mind to suffer the slings and "
        "arrows of outrageous fortune, or to take arms against a sea of troubles and by opposing end them. To "
        "die, to sleep, no more; and by a sleep to say we end the heart-ache and the thousand natural shocks "
        "that flesh is heir to: 'tis a consummation devoutly to be wish'd. To die, to sleep; to sleep, "
        "perchance to dream, ay, there's the rub: for in that sleep of death what dreams may come"
    ),
    "Two Cities": (
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of "
        "foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of "
        "Light, it was the season of Darkness, it was the spring of hope, it was the winter of despair, we "
        "had everything before us, we had nothing before us, we were all going direct to Heaven, we were all "
        "going direct the other way."
    ),
    "Pride": (
        "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be "
        "in want of a wife. However little known the feelings or views of such a man may be on his first "
        "entering a neighbourhood, this truth is so well fixed in the minds of the surrounding families, that "
        "he is considered the rightful property of some one or other of their daughters."
    ),
    "Moby Dick": (
        "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my "
        "purse, and nothing particular to interest me on shore, I thought I would sail about a little and see "
        "the watery part of the world. It is a way I have of driving off the spleen and regulating the "
        "circulation. Whenever I find myself growing grim about the mouth; whenever it is a damp, drizzly "
        "November in my soul"
    ),
}
LICENCE = 1_500
"""Characters of the licence that are asked, from its grant on."""


def famous() -> Corpus:
    """The famous texts, and the Apache licence of this repository."""
    texts = dict(FAMOUS)
    licence = " ".join((ROOT / "LICENSE").read_text("utf-8").split())
    texts["Apache licence"] = licence[licence.index("Grant of Copyright License") :][:LICENCE]
    return Corpus("famous", tuple(Text(name, text) for name, text in texts.items()))


def controls() -> Corpus:
    """Paragraphs of our own docs, which no model of today has read, as many and as long."""
    found = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        for paragraph in page.read_text("utf-8").split("\n\n"):
            text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            if len(text) > 450 and re.match(r"[A-Z][a-z]", text) and not re.search(r"[|\[<]", text):
                found.append(text[:600])
    return Corpus("our docs", tuple(Text(f"paragraph {i}", text) for i, text in enumerate(found[:12])))
