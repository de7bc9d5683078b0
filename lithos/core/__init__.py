"""Synchronous and pure: no trio, files, clock, randomness or logging."""
