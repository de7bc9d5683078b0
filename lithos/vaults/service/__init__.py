"""Joint answers, and moves between vaults.

Its own package and those after it use it.
Never here: ranking within a vault.
"""

ROLE = "service"
