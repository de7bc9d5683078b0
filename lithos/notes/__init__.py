"""Notes and their files: reading, writing, watching and moving them; links between them.

The packages after it in the order of docs/develop.md use it.
Never here: who is asking.
"""
