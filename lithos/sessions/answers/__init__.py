"""Answers of tools about sessions: rows of hits, the text of turns, addresses of turns, sources of notes.

The tools and pages of `sessions` import it. Other packages use it only through `PastSessions`.
Searching and storing do not belong here (`service`, `rows`).
"""

ROLE = "service"
