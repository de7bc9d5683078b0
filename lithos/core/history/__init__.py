"""Versions of notes, sections of a note, edits of one place, and three-way merges; pure."""
