"""The recorder, which adds missing versions to the history.

Only the history package and `app` use the recorder. Code that changes notes does not belong here.
"""

ROLE = "actor"
