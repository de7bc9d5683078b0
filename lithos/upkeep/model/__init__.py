"""Values for note issues, likely link targets and note usage.

Only its own package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
