"""Addresses of several vaults.

`lithos.app` alone uses it.
Never here: what is served.
"""

ROLE = "pages"
