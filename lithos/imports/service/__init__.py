"""Planning and running of an import.

Only its own package imports this package.
It must not change notes without the note writer.
"""

ROLE = "service"
