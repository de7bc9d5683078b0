"""Tools of memory: retrieval, briefings and relations.

Its own package, `upkeep` and `vaults` use it.
Never here: rules of ranking.
"""

ROLE = "tools"
