"""Composition of imports: the service of a running server, and one import by a command.

`app` joins the service to its server; `cli` runs imports.
Never here: what becomes of a record.
"""
