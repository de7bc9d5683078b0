"""Retrieval with evidence, and learning from citations.

`memory`, `upkeep` and `vaults` import this package.
It must not change notes.
"""

ROLE = "service"
