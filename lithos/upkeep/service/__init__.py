"""The timeline of an agent.

Only its own package uses it.
Never here: changes.
"""

ROLE = "service"
