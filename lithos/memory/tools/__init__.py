"""Tools of memory: retrieval, briefings and relations.

`memory`, `upkeep` and `vaults` import this package.
It must not contain ranking rules.
"""

ROLE = "tools"
