"""The text of a note: parsing, rendering and repair.

Used by this package and by later packages.
Never here: file access, clocks, threads and logs.
"""

ROLE = "model"
