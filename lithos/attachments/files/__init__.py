"""The process that reads files, and the shelf that stores their text.

Only its own package imports this package.
It must not parse notes.
"""

ROLE = "files"
