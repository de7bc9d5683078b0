"""Background work: entities, provenance and remembered questions.

Its own package and `upkeep` import this package.
It must not answer clients.
"""

ROLE = "service"
