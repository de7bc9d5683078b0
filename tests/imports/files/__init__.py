"""Tests that import sources are read into records."""
