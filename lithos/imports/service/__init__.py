"""Planning and running of an import.

Only the `imports` package imports this package. It must not change notes without the note writer.
"""

ROLE = "service"
