"""How hits are scored, joined and judged.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
