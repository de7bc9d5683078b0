"""The content of a briefing: selection, shortening and rendering.

`memory` and `vaults` import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
