"""Tests of the console without a browser; those with one are in tests/browser."""
