"""The actors that keep the indexes, and the tiers of models.

Its own package and those after it use it.
Never here: ranking.
"""

ROLE = "actor"
