"""Several vaults in one process: joint answers, and moving notes between vaults.

Only `app` imports this package.
It must not make decisions for a single vault.
"""
