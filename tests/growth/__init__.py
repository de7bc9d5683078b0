"""Measurements of how processing time grows with the length of a text."""
