"""What need not be computed twice, kept between runs: traces and drawn texts."""
