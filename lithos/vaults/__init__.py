"""Joint answers from several vaults in one process, and note moves between vaults.

Only the `app` package imports this package. Decisions about a single vault do not belong here.
"""
