"""Console pages of several vaults.

Only its own package and `app` use it.
Never here: the content of a page of one vault.
"""

ROLE = "pages"
