"""Overview, agents, system and care in the console; monitoring.

`lithos.app` alone uses it.
Never here: changes past the service.
"""

ROLE = "pages"
