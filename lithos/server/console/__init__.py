"""The shell of the console: sessions, frame, formats, templates and static files.

The packages after it in the order of docs/develop.md use it.
Never here: what a page shows.
"""

ROLE = "pages"
