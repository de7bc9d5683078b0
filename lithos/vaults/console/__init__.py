"""Pages of several vaults.

`lithos.app` alone uses it.
Never here: what a page shows.
"""

ROLE = "pages"
