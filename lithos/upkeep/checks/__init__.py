"""Checks and their views: doctor, validate, reconcile and care.

Its own package and `vaults` use it.
Never here: repairs without the operator's consent.
"""

ROLE = "service"
