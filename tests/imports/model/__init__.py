"""Tests for reading the formats of other programs as values."""
