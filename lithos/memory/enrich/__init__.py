"""Background work: extraction of entities, projection of provenance, and upkeep of remembered questions.

`memory` and `upkeep` import this package.
It must not answer clients.
"""

ROLE = "service"
