"""The token ring and the authorization server.

Its own package and `vaults` import this package.
It must not implement tools.
"""

ROLE = "service"
