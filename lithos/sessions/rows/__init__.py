"""The database `.lithos/sessions.db`: sessions, their masked text, its words and vectors, and the progress.

The actor and the service of `sessions` import it.
Transcripts are not opened here. Never here: text that was not masked.
"""

ROLE = "rows"
