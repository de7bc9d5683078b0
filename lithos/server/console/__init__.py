"""The shell of the console: sessions, frame, formats, templates and static files.

Its own package and later ones use it.
Never here: the content of a page.
"""

ROLE = "pages"
