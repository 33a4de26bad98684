"""What was cut and what was skipped: nothing leaves a run without a word."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pretrace.report.facts import counts
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 70
MOST = 50


def section(run: Run) -> Section:
    """Counts, shares and the names of up to fifty texts of each kind."""
    cut = [(run.ids[i], int(run.tokens[i]), int(run.cut[i])) for i in np.flatnonzero(run.cut > 0)]
    values = {
        "counts": counts(run),
        "cut": cut[:MOST],
        "skipped": run.skipped[:MOST],
        "reasons": Counter(text.reason for text in run.skipped).most_common(),
        "most": MOST,
    }
    return Section("What was cut and skipped", "skipped", fill("skipped.html", values))
