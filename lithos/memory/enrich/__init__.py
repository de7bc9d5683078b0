"""Background work: entities, provenance and remembered questions.

Its own package and `upkeep` use it.
Never here: answers to clients.
"""

ROLE = "service"
