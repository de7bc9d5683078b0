"""The actor that has files read.

Its own package and those after it use it.
Never here: changes of files.
"""

ROLE = "actor"
