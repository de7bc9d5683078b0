"""Shared parts of the console: sessions, page frame, formats, templates and static files.

Only the server package and the packages above it import this package. Never here: the content of a page.
"""

ROLE = "pages"
