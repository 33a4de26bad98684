"""Inside the harnesses that people already run: scorers for inspect_ai, and the logs of lm-evaluation-harness."""
