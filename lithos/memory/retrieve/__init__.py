"""Retrieval with evidence, and learning from citations.

Its own package, `upkeep` and `vaults` use it.
Never here: changes of notes.
"""

ROLE = "service"
