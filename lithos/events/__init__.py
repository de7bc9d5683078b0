"""The journal of what happened, and who reads it: agents, audit, cursors and streams.

`lithos.app` alone may enter.
Never here: what an event means.
"""
