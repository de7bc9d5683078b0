"""What the hooks of a client have in common: silence and a deadline, the running server, what stdin tells.

`lithos.cli.briefing` and `lithos.cli.checkpoint` use it, and `lithos.cli` before it parses.
Never here: what a hook asks or prints; anything that takes long to import.
"""
