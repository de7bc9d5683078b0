"""Files of tokens, clients and grants, readable only by their user.

Only its own package imports this package.
It must not store a secret where a hash is enough.
"""

ROLE = "files"
