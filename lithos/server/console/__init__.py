"""Shell of the console: sessions, page frame, formats, templates and static files.

Importers: the server package and packages above it.
Never here: the content of a page.
"""

ROLE = "pages"
