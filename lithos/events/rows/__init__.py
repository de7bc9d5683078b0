"""Storage of the journal and its tables in `coordination.db`.

`lithos.events` and later packages use this package. The package must not interpret rows of other
capabilities.
"""

ROLE = "rows"
