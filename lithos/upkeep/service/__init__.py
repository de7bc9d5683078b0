"""The timeline of an agent.

Only `upkeep` imports it.
Never here: changes.
"""

ROLE = "service"
