"""Shared parts of the console: sessions, page frame, formats, templates and static files.

Only the server package and packages in higher layers import this package. Never here: the content of a page.
"""

ROLE = "pages"
