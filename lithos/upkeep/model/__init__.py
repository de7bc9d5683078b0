"""Issues of notes, likely targets of links and worth as values.

Only its own package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
