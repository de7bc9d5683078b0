"""The kinds of MCP resources, a module for each owner.

`lithos.services.notes.resources` lists and reads them all; the front gives them out.
Never here: the protocol.
"""
