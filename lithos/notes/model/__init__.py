"""What a note is: its values, paths, copies, versions, scopes and entities.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
