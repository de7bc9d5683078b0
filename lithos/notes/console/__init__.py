"""Console pages about notes.

Used by this package, `tasks` and `memory`.
Never here: changes that bypass the service.
"""

ROLE = "pages"
