"""The coordinator, which commits all commands in one order, and the broadcaster of committed events.

Its own package and later packages use this package. It must not contain commands of other capabilities.
"""

ROLE = "actor"
