"""The watcher, which detects changes by other programs, and its deletion guard.

The package `notes` and later packages use this package.
Never here: code that writes notes.
"""

ROLE = "actor"
