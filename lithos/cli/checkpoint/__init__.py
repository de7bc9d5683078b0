"""`lithos checkpoint`: keep what a session learned as a note of the running server, and its hook.

`lithos.cli` dispatches to it.
Never here: what a note looks like in its file; the server writes it.
"""
