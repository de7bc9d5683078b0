"""URLs of several vaults on one port.

Only the `vaults` and `app` packages import this package. Endpoint contents do not belong here.
"""

ROLE = "pages"
