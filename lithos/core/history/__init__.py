"""Versions of notes, sections of a note, edits of one place, and three-way merges; pure.

Stores, the writer and services build on it.
Never here: files, databases, the clock, or which note is meant.
"""
