"""Retrieval with evidence, and learning from citations.

Its own package, `upkeep` and `vaults` import this package.
It must not change notes.
"""

ROLE = "service"
