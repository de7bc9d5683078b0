"""Sessions, their turns, the bounds of both, and the values that the service returns.

All other folders of `sessions` import it.
Reading of files does not belong here, and neither does the format of a client (`formats`).
"""

ROLE = "model"
