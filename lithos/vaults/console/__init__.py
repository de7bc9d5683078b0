"""Console pages that cover several vaults.

Only the `vaults` and `app` packages import this package. Content of single-vault pages does not belong here.
"""

ROLE = "pages"
