"""Files of tokens, clients and grants, readable only by their user.

Only its own package uses it.
Never here: secrets where a hash is enough.
"""

ROLE = "files"
