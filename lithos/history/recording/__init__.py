"""The recorder and the background task that adds missing versions to the history.

Only this package and `app` import these modules. Do not change notes here.
"""

ROLE = "actor"
