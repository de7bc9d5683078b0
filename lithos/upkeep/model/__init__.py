"""Values for note issues, likely link targets and note usage.

Only `upkeep` imports it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
