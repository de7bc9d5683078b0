"""The process that reads files, and the shelf that stores their text.

Only its own package uses it.
Never here: the parsing of notes.
"""

ROLE = "files"
