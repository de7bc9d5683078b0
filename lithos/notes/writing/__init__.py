"""The one writer of notes, and what prepares, applies and publishes a change.

Its own package and those after it use it.
Never here: tools and rights.
"""

ROLE = "actor"
