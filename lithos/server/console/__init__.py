"""Shell of the console: sessions, page frame, formats, templates and static files.

This package and the packages above it use the shell. The content of pages belongs to other packages.
"""

ROLE = "pages"
