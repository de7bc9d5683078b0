"""Access to transcripts, which is read-only, and to the list of added folders.

The actor, the checks and the commands of `sessions` import it.
It must not open a transcript for writing, and must not follow a link out of an added folder.
"""

ROLE = "files"
