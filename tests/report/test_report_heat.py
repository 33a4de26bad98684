"""One scale of colours, on the page and in the terminal."""

import io
import math
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from pretrace.report.heat import MAX_PIECES, STEPS, heat_step, print_heat, shown, summarise
from pretrace.types import Heat


def luminance(colour):
    """Relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def printed(heat, *, encoding="utf-8", **kind):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="")
    print_heat(heat, Console(file=file, width=100, **kind))  # type: ignore[arg-type]
    file.flush()
    return raw.getvalue().decode(encoding)


def test_steps_are_steps_of_probability():
    for probability, step in [
        (1.0, 0),
        (0.5, 0),
        (0.49, 1),
        (0.1, 1),
        (0.02, 2),
        (0.002, 3),
        (2e-4, 4),
        (1e-5, 5),
    ]:
        assert heat_step(math.log(probability)) == step
    assert heat_step(-math.inf) == len(STEPS) - 1
    assert heat_step(None) is None
    assert heat_step(math.nan) is None


def test_surprise_darkens_and_ink_stays_readable():
    tones = [luminance(STEPS[heat_step(logp) or 0].colour) for logp in np.linspace(0, -15, 200).tolist()]
    assert tones == sorted(tones, reverse=True)
    levels = sorted(set(tones))
    assert len(levels) == len(STEPS)
    # Apart by eye on a grey printer, and black text has the contrast WCAG asks for.
    assert min(b / a for a, b in pairwise(levels)) > 1.1
    assert min((tone + 0.05) / (luminance("#1c1c1c") + 0.05) for tone in levels) > 4.5


def test_the_figures_are_those_of_the_text():
    heat = Heat("a", ("x", "y", "z", "w"), (None, -1.0, -4.0, -2.5))
    summary = summarise(heat, most=2)
    assert (summary.tokens, summary.predicted, summary.mean) == (4, 3, -2.5)
    assert summary.perplexity == "12.18"
    assert summary.surprising == (("z", -4.0), ("w", -2.5))


def test_without_colour_surprise_stands_in_brackets():
    heat = Heat("id", ("The", " cat", " sat", "\n", " xy"), (None, -0.1, -8.0, -8.0, -12.0), "a note")
    text = printed(heat)
    assert "\x1b" not in text
    assert "id  a note" in text
    assert "The cat ⟦sat⟧⟦↵⟧\n ⟦⟦xy⟧⟧" in text
    assert "⟦token⟧ held less likely than 1 in 1,000, ⟦⟦token⟧⟧ than 1 in 10,000" in text
    assert "4 tokens predicted · mean log-probability −7.025 nats" in text
    assert "“ xy” (−12.0), “ sat” (−8.0), “↵” (−8.0)" in text


def test_no_color_is_obeyed(monkeypatch):
    heat = Heat("id", ("a", " b"), (-1.0, -12.0))
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = printed(heat, force_terminal=True, color_system="truecolor")
    assert "48;" in coloured
    assert "⟦" not in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(heat, force_terminal=True, color_system="truecolor")
    assert "48;" not in text
    assert "⟦⟦b⟧⟧" in text


def test_an_ascii_terminal_gets_ascii():
    text = printed(Heat("é", ("a", "ñ\n"), (-1.0, -12.0)), encoding="ascii")
    assert "[[?$]]" in text


def test_no_escape_sequence_of_a_text_reaches_the_terminal(hostile):
    for heat in hostile.heat:
        text = printed(heat)
        assert not {"\x1b", "\x00", "\u202e"} & set(text)
        assert "\\x" in text or "\\u" in text or len(heat.pieces) == 1


def test_markup_of_the_terminal_is_only_text():
    assert "[red]:smile:[/red]" in printed(Heat("[bold]x", ("[red]:smile:[/red]",), (-1.0,)))


def test_long_texts_are_cut_and_it_is_said():
    text = printed(Heat("long", ("ab ",) * 2000, (-1.0,) * 2000))
    assert text.count("ab ") <= MAX_PIECES + 5
    assert "the first 600 of 2,000 tokens" in text
    assert "2,000 tokens predicted" in text
    assert len(shown("x" * 100_000)) == 200


@pytest.mark.parametrize("heat", [Heat("none", (), ()), Heat("first", ("a",), (None,))])
def test_a_text_without_predictions_is_said_so(heat):
    assert "none of them predicted" in printed(heat)


def test_certain_and_impossible_tokens(labelled):
    assert "perplexity beyond measure" in printed(Heat("x", ("a", "b"), (0.0, -math.inf)))
    assert "perplexity 1.000" in printed(Heat("x", ("a",), (0.0,)))
