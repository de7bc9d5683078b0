"""Several vaults in one process: joint answers, and moves of notes between vaults.

Only `app` imports this package.
It must not make decisions for a single vault.
"""
