"""Addresses of several vaults.

Only its own package and `app` import this package.
It must not produce the content of an endpoint.
"""

ROLE = "pages"
