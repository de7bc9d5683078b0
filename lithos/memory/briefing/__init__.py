"""Selection, shortening and rendering of a briefing.

Its own package and `vaults` import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
