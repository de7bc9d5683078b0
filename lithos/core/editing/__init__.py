"""Editing configuration files of other programs: JSON with its dialects, and TOML, by spans of the text.

`lithos connect` uses it. Whatever is not the entry keeps its bytes.
Never here: files, and what a client wants in its entry.
"""
