"""Console pages about notes.

This package, `tasks` and `memory` use it. It must not change notes without the service.
"""

ROLE = "pages"
