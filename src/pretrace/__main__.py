"""`python -m pretrace`, the same as the command."""

from pretrace.cli import main

main()
