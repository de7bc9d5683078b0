"""Files that store tokens, clients and grants. Only their user can read them.

Only `access` imports this package. It must not store a secret if a hash is enough.
"""

ROLE = "files"
