"""`coordination.db`: the journal and the rows beside it.

Its own package and those after it use it.
Never here: what a row of another capability means.
"""

ROLE = "rows"
