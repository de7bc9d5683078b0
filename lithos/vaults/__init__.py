"""Several vaults in one process: joint answers, and moving of notes between vaults.

Only `app` uses it.
Never here: decisions of a single vault.
"""
