"""Gathering of the notes, changes and tasks for a briefing.

Its own package, `proposals` and `vaults` use it.
Never here: ranking.
"""

ROLE = "service"
