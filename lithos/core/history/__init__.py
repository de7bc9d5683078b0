"""Versions of notes: rows, what a store of them offers, and which are kept for how long.

Everybody may enter.
Never here: files, databases, the clock; what a tool answers.
"""
