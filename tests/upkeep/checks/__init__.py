"""Tests of checks and samples of a running server."""
