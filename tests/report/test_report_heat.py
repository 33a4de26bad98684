"""One scale of colours, on the page and in the terminal."""

import io
import math

from rich.console import Console

from pretrace.report.heat import MAX_PIECES, STEPS, heat_lines, heat_step, shown
from pretrace.types import Heat


def printed(heat, **kind):
    file = io.StringIO()
    console = Console(file=file, width=100, **kind)
    console.print(*heat_lines(heat, console), sep="\n")
    return file.getvalue()


def test_steps_are_steps_of_probability():
    steps = {1.0: 0, 0.5: 0, 0.49: 1, 0.1: 1, 0.02: 2, 0.002: 3, 2e-4: 4, 1e-5: 5}
    assert {p: heat_step(math.log(p)) for p in steps} == steps
    assert heat_step(-math.inf) == len(STEPS) - 1
    assert heat_step(None) is heat_step(math.nan) is None


def test_without_colour_surprise_stands_in_brackets():
    heat = Heat("id", ("The", " cat", " sat", "\n", " xy"), (None, -0.1, -8.0, -8.0, -12.0), "a [bold]note")
    text = printed(heat)
    assert "\x1b" not in text
    assert "id  a [bold]note" in text
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


def test_no_escape_sequence_of_a_text_reaches_the_terminal(hostile):
    for heat in hostile.heat:
        text = printed(heat)
        assert not {"\x1b", "\x00", "\u202e"} & set(text)
        assert "\\x" in text or "\\u" in text or len(heat.pieces) == 1


def test_long_texts_are_cut_and_it_is_said():
    text = printed(Heat("long", ("ab ",) * 2000, (-1.0,) * 2000))
    assert text.count("ab ") <= MAX_PIECES + 5
    assert "the first 600 of 2,000 tokens" in text
    assert "2,000 tokens predicted" in text
    assert len(shown("x" * 100_000)) == 200
