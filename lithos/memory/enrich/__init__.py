"""Background work: extraction of entities, projection of provenance, and upkeep of remembered questions.

Its own package and `upkeep` import this package.
It must not answer clients.
"""

ROLE = "service"
