"""The actors that update the indexes, and the model tiers.

The search package and packages in higher layers import this package. Ranking does not belong here.
"""

ROLE = "actor"
