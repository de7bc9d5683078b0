"""The watcher for changes by other programs, with the deletion guard.

Used by this package and by later packages.
Never here: code that writes notes.
"""

ROLE = "actor"
