"""Pages of notes in the console.

`lithos.app` alone uses it.
Never here: changes past the service.
"""

ROLE = "pages"
