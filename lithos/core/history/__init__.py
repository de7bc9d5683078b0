"""Versions of notes and which are kept, sections of a note, edits of one place, three-way merges, undo; pure.

Stores, the writer and services build on it.
Never here: files, databases, the clock, or which note is meant.
"""
