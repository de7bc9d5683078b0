"""The only writer of notes: it prepares, applies and publishes each change.

Used by this package and by later packages.
Never here: tools and tokens.
"""

ROLE = "actor"
