"""Tests that formats of other programs are read as values."""
