"""The list of capabilities, and the start and stop of a server.

Only `__main__` uses it.
Never here: rules, queries and protocols.
"""
