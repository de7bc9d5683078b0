"""Checks, and the views of them: doctor, validate, reconcile, care.

Its own package and those after it use it.
Never here: repairs that nobody asked for.
"""

ROLE = "service"
