"""What innocent models showed where it was measured: the margin of an audit without control documents.

A target that knows a domain better than its placebo finds true text likelier than generated text even where it never
saw the texts. How far differs from domain to domain and grows with exposure, so no number fits all. The margin is the
largest lean that was measured on any domain, exposure and size (`leans.json`, written by
`benchmarks.audit_errors`); docs/audit.md says how often it holds on a domain that was left out.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from pretrace.types import Lean


@cache
def leans() -> tuple[Lean, ...]:
    """The measured leans, one a domain and exposure, in the unit of the audit's values."""
    text = files("pretrace.auditing").joinpath("leans.json").read_text(encoding="utf-8")
    return tuple(Lean(**row) for row in json.loads(text)["leans"])


def margin(found: tuple[Lean, ...]) -> float:
    """The largest of the leans, and 0 where all are below."""
    return max((lean.value for lean in found), default=0.0) if found else 0.0
