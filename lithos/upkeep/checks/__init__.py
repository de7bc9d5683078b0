"""The checks of doctor, validate, reconcile and care, and the views that run them.

`upkeep` and `vaults` use it.
Never here: repairs without the operator's consent.
"""

ROLE = "service"
