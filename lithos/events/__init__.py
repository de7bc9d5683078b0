"""The journal of all changes, with its readers: agents, audit, cursors and streams.

Later packages use it.
Never here: the meaning of an event.
"""
