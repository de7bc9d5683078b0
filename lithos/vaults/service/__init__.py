"""Joint answers, and moves of notes between vaults.

Only its own package and `app` import this package.
It must not rank notes within a vault.
"""

ROLE = "service"
