"""What is asked of notes: reading, listing, writing, moving.

Its own package and those after it use it.
Never here: rules of writing.
"""

ROLE = "service"
