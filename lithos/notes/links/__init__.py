"""Links in texts, properties and canvases.

Used by this package and by later packages.
Never here: file access, clocks, threads and logs.
"""

ROLE = "model"
