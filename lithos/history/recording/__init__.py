"""The recorder, which adds missing versions to the history.

Only its own package and `app` use it.
Never here: changes of notes.
"""

ROLE = "actor"
