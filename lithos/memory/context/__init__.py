"""Collection of the notes, changes and tasks for a briefing.

Its own package, `proposals` and `vaults` import this package.
It must not rank notes.
"""

ROLE = "service"
