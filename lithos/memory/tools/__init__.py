"""Tools of memory: retrieval, briefings, relations.

`lithos.app` alone uses it.
Never here: rules of ranking.
"""

ROLE = "tools"
