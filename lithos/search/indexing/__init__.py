"""The actors that update the indexes, and the model tiers.

`search` and the packages above it import this package. Ranking does not belong here.
"""

ROLE = "actor"
