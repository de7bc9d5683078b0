"""Tools of memory: retrieval, briefings and relations.

Its own package, `upkeep` and `vaults` import this package.
It must not contain ranking rules.
"""

ROLE = "tools"
