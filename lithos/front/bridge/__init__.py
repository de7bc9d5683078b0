"""The stdio bridge to an owner in another process, and the client that commands use.

The command line starts it.
Never here: indexes, models, or stores other than the lock.
"""
