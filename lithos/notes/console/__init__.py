"""Console pages of notes.

Its own package, `tasks` and `memory` use it.
Never here: changes without the service.
"""

ROLE = "pages"
