"""The coordinator, which commits all commands in one order, and the broadcaster of committed events.

Its own package and later ones use it.
Never here: the commands of other capabilities.
"""

ROLE = "actor"
