"""Evaluation of searches with the questions of a vault.

Only its own package uses it.
Never here: changes of notes.
"""

ROLE = "service"
