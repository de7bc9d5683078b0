"""The list of capabilities, and the start and stop of a server.

`lithos.__main__` alone uses it.
Never here: rules, queries and protocols.
"""
