"""List of capabilities, and the start and stop of a server.

Only `__main__` imports this package. It contains no rules, queries or protocols.
"""
