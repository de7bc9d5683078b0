"""The watcher, which detects changes by other programs, and its deletion guard.

This package must not contain code that writes notes.
"""

ROLE = "actor"
