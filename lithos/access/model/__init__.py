"""OAuth as pure values: requests, grants, claims and addresses.

Only its own package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
