"""Tests of a running server's checks and samples."""
