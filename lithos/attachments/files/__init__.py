"""The process that reads files, and the database that stores their text.

Only the `attachments` package imports this package. It must not parse notes.
"""

ROLE = "files"
