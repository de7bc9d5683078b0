"""Typed edges and neighbourhoods of notes.

Its own package and `imports` import this package.
It must not change data without the actor.
"""

ROLE = "service"
