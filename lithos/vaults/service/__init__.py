"""Joint answers of several vaults, and moving notes between vaults.

Only the `vaults` package and `app` import this package. It must not rank notes within a vault.
"""

ROLE = "service"
