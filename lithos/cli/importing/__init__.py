"""`lithos import`: reads a source here, and has the notes written in this process or by a running server.

`lithos.cli` dispatches to it.
Never here: formats of sources (stores.importing), and what becomes of a record (services.importing).
"""
