"""Briefings, as values and rules: tokens, passages of notes, the choice within a budget, and their Markdown.

The context service calls it with what it has read.
Never here: files, clocks, threads or indexes.
"""
