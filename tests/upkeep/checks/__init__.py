"""Tests of the checks and samples of a running server."""
