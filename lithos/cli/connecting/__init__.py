"""`lithos connect`: recipes of clients, their configuration files edited, and what is connected.

`lithos.cli` dispatches to it.
Never here: what the server does.
"""
