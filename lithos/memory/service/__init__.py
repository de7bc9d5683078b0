"""Typed edges and neighbourhoods.

Its own package and those after it use it.
Never here: changes past the actor.
"""

ROLE = "service"
