"""Joint answers, and moving of notes between vaults.

Only its own package and `app` use it.
Never here: ranking within a vault.
"""

ROLE = "service"
