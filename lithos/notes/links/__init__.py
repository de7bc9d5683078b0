"""Links in texts, properties and canvases.

The notes package and later packages use this package. It must not use files, clocks, threads or logs.
"""

ROLE = "model"
