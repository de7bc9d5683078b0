"""Measurements of the growth of processing time with the length of a text."""
