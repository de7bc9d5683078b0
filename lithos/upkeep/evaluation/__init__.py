"""Evaluation of searches with test questions for a vault.

Only `upkeep` imports it.
Never here: changes of notes.
"""

ROLE = "service"
