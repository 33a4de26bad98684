"""Benchmarks are run from a checkout and not installed: their folder is made importable here."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
