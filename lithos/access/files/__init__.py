"""The files of tokens, clients and grants, which only the user can read.

Only its own package uses it.
Never here: secrets where a hash is enough.
"""

ROLE = "files"
