"""The actors that update the indexes, and the tiers of models.

Its own package and later ones use it.
Never here: ranking.
"""

ROLE = "actor"
