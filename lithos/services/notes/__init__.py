"""Notes for callers: write, read, list, texts and snippets, relations, edges, resources.

Tools and the front call it.
Never here: write rules (actors/writing) or wire rows (tools).
"""
