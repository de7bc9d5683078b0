"""Collection of the notes, changes and tasks for a briefing.

`memory`, `proposals` and `vaults` import this package.
It must not rank notes.
"""

ROLE = "service"
