"""The recorder, which adds missing versions to the history.

Only `history` and `app` import this package. Code that changes notes does not belong here.
"""

ROLE = "actor"
