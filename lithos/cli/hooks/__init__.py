"""The hooks of a client: a briefing and a checkpoint of the running server, silent and within a deadline.

`lithos.cli` runs them; `lithos brief` and `checkpoint` for people use what they share.
Never here: anything that takes long to import.
"""
