"""What need not be computed twice, kept between runs: traces, drawn texts, and choices measured on this machine."""
