"""The coordinator, which commits all commands in one order, and the broadcaster.

Its own package and those after it use it.
Never here: what a command of another capability does.
"""

ROLE = "actor"
