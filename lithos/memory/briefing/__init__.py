"""How a briefing is chosen, shortened and written.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
