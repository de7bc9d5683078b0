"""Addresses of several vaults.

Only its own package and `app` use it.
Never here: the content of an endpoint.
"""

ROLE = "pages"
