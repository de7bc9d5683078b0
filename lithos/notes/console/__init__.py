"""Console pages about notes.

The packages `notes`, `tasks` and `memory` use this package. It must not change notes without the service.
"""

ROLE = "pages"
