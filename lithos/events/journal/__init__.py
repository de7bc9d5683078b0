"""The coordinator, which commits all commands in one order, and the broadcaster of committed events.

`lithos.events` and later packages use this package. The package must not contain commands of other
capabilities.
"""

ROLE = "actor"
