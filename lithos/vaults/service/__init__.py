"""Joint answers from several vaults, and note moves between vaults.

Only the `vaults` and `app` packages import this package. Ranking within one vault does not belong here.
"""

ROLE = "service"
