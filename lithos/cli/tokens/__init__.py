"""`lithos token`: create, list and revoke named tokens, with or without a running server.

`lithos.cli` dispatches to it.
Never here: what a token allows; the server decides.
"""
