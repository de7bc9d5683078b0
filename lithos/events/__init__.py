"""Package for the journal of all changes, and for agents, the access log, cursors and event streams.

Later packages use it.
Never here: the meaning of an event.
"""
