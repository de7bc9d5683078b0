"""Tests of OAuth services."""
