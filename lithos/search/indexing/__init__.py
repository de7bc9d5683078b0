"""The actors that update the indexes, and the model tiers.

Search and later packages use it.
Never here: ranking.
"""

ROLE = "actor"
