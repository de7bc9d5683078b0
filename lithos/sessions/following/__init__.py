"""The actor that follows transcripts and keeps the index of sessions up to date.

The service of `sessions` and `app` import it.
Searching does not belong here (`service`). It must not open a transcript for writing.
"""

ROLE = "actor"
