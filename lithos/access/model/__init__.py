"""OAuth as values: requests, grants, claims, addresses.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
