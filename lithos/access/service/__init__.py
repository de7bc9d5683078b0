"""The token ring and the authorization server.

`access` and `vaults` import this package.
It must not implement tools.
"""

ROLE = "service"
