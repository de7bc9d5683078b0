"""The only writer of notes, which prepares, applies and publishes each change.

Its own package and later ones use it.
Never here: tools and tokens.
"""

ROLE = "actor"
