"""What a stranger registers for the report of a test: its figure on page one, its sections behind it, names as text."""

from dataclasses import replace

import pytest
from markupsafe import Markup
from report import audits

from pretrace.registry import test_pages as pages
from pretrace.report import verdict_plots as plots
from pretrace.report.frame import Section
from pretrace.report.svg import canvas
from pretrace.report.verdict import TestPage, render


@pytest.fixture
def found():
    @pages.add("mine")
    class MyPage(TestPage):
        sections = (lambda found: Section("Mine", "mine", Markup("<p>of {}</p>").format(found.corpus)),)

        @staticmethod
        def draw(verdict):
            with canvas(3, 1) as (figure, axes):
                axes.plot([0, 1], [0, 1])
            return plots.TestFigure(figure, "a line", "My <caption>")

    yield replace(audits.bare(), test="mine", corpus="<script>", figures={})
    pages.remove("mine")


def test_a_figure_and_a_section_of_ones_own_are_shown(found):
    page = render(found)
    assert "<p>of &lt;script&gt;</p>" in page
    assert page.index("My &lt;caption&gt;") < page.index('id="mine"') < page.index('id="test"')
    assert 'aria-label="a line"' in page


def test_a_test_without_a_page_of_its_own_has_the_page_of_all(found):
    assert "My &lt;caption&gt;" not in render(replace(found, test="another"))
