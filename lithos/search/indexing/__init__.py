"""The actors that update the indexes, and the model tiers.

The search package and later packages use this package. Ranking does not belong here.
"""

ROLE = "actor"
