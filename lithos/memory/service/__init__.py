"""Typed edges and neighbourhoods of notes.

Its own package and `imports` use it.
Never here: changes without the actor.
"""

ROLE = "service"
