"""The text of a note: parsing, rendering and repair.

The notes package and later packages use this package. It must not use files, clocks, threads or logs.
"""

ROLE = "model"
