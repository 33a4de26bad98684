"""Measurements of speed and memory: `python -m benchmarks.speed`. Results are JSON with machine and commit."""
