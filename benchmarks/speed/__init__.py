"""How fast: passes, counting, fitted detectors, servers of weights, the page."""
