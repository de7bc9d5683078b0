"""List of capabilities, and code that starts and stops a server.

Only `__main__` imports this package. The package must not contain rules, queries or protocols.
"""
