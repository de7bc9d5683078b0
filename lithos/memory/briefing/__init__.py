"""Choosing, shortening and writing of a briefing.

Its own package and `vaults` use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
