"""The process that reads files, and the shelf of what was read.

Its own package and those after it use it.
Never here: what a note says.
"""

ROLE = "files"
