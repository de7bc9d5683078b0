"""Checks, validation and reconciliation of derived state.

`lithos doctor`, `validate`, `reconcile` and the server at start call it.
Never here: changes of note files other than `validate --fix`.
"""
