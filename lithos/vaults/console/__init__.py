"""Console pages that cover several vaults.

Only the `vaults` package and `app` import this package. It must not produce the content of one vault's pages.
"""

ROLE = "pages"
