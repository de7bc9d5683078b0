"""Evaluation of searches with test questions for a vault.

Only its own package uses it.
Never here: changes of notes.
"""

ROLE = "service"
