"""`lithos connect`: recipes of clients, their configuration files edited, and what is connected.

`lithos.cli` dispatches to it.
Never here: how a text is edited (`core.editing`), or what the server does.
"""
