"""Console pages of several vaults.

Only its own package and `app` import this package.
It must not produce the content of one vault's pages.
"""

ROLE = "pages"
