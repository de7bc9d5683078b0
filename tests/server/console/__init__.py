"""Console tests without a browser. Tests with a real browser are in tests/browser."""
