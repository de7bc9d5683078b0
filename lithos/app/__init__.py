"""The list of capabilities, and the start and stop of a server.

Only `__main__` imports this package.
It must not contain rules, queries or protocols.
"""
