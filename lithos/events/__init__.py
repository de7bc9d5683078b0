"""The journal of what happened, and who reads it: agents, audit, cursors and streams.

The packages after it in the order of docs/develop.md use it.
Never here: what an event means.
"""
