"""Files of tokens, clients and grants, private to the user.

Its own package and those after it use it.
Never here: secrets of which a hash would do.
"""

ROLE = "files"
