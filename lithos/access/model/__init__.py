"""OAuth as pure values: requests, grants, claims and addresses.

Only `access` imports this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
