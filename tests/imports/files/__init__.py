"""Tests for reading import sources into records."""
