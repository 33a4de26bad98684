"""A made-up verdict, for what is written and drawn of any."""

from dataclasses import replace

import numpy as np
import pytest

from pretrace.types import Check, Estimate, Null, Power, Skipped, Table, Verdict


@pytest.fixture
def made():
    """A verdict with every field filled; keyword arguments replace some."""

    def make(**changes):
        verdict = Verdict(
            test="marks",
            corpus='letters <b>"\r',
            model="model",
            outcome="consistent",
            statement="The predictions of model are consistent with training on the letters, or on copies of them.",
            level=0.05,
            exact=True,
            assumption="The variant that was published was drawn by lot.",
            hypothesis="the published variant is no likelier than the others",
            statistic="sum of differences",
            p=0.1 + 0.2,
            units=3,
            unit="document",
            question="Was model trained on the letters?",
            compared=("Of each text one variant was published.",),
            trust=("<script>alert(1)</script>",),
            null=Null("sum", 2.5, 1.7, (-1.0, 0.0, 1.0), (50, 50)),
            effect=Estimate(0.3, 0.1, 0.5),
            effect_unit="nats a token",
            standardised=0.8,
            planted=Power(
                Estimate(0.9, 0.8, 1.0), 12, 10, 1, Estimate(0.4, 0.3, 0.5), ((10, 0.5), (20, 0.9))
            ),
            checks=(
                Check("seal", "The sealed file is the one that was committed to", "passed", "It is."),
                Check("placebo", "A placebo finds nothing", "failed", "p = 0.01.", "Name another."),
            ),
            reasons=("The test gave p = 0.3.",),
            advice=("More documents.",),
            notes=("One text was left out.",),
            figures={"documents": 3, "nested": {"share": 1 / 3}},
            tables=(
                Table(
                    "texts",
                    {"id": ("=a", 'b "quoted",\r', "ü\n漢"), "difference": np.array([1e-300, np.nan, -7.0])},
                ),
            ),
            skipped=(Skipped("x", "the text is empty", 0),),
            statements={"requested_by": "An author"},
            settings={"corpus": {"sha256": "ab" * 32}, "time": "2026-11-22T21:00:00+00:00"},
        )
        return replace(verdict, **changes)  # type: ignore[arg-type]

    return make
