"""Health, statistics and gauges.

Its own package and those after it use it.
Never here: changes.
"""

ROLE = "service"
