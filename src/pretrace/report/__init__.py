"""Results as pages: `run` and `verdict` make them, `audit` and `flags` have what these tests show of their own, `heat`
colours a text's tokens."""
