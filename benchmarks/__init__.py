"""Measurements, in folders by question. Results are JSON with machine and commit, in `results/`."""

from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).resolve().parents[1]
