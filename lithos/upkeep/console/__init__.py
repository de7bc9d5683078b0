"""Console pages for the operator: overview, agents, system, care and monitoring.

`upkeep` and `vaults` use it.
Never here: changes without the service.
"""

ROLE = "pages"
