"""Use cases of notes: reading, listing, writing, merging and moving.

Its own package and later ones use it.
Never here: rules of writing.
"""

ROLE = "service"
