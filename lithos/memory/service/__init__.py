"""Typed edges and neighbourhoods of notes.

`memory` and `imports` import this package.
It must not change data without the actor.
"""

ROLE = "service"
