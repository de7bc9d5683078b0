"""HTTP addresses of several vaults.

Only the `vaults` package and `app` import this package. It must not produce the content of an endpoint.
"""

ROLE = "pages"
