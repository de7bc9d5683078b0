"""Tools that write, read, list, search and relate notes.

Registered by the composition.
Never here: ranking or storage.
"""
