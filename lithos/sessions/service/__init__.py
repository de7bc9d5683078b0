"""The service `Sessions`: searching, reading, listing and forgetting sessions.

Tools, commands, pages and `app` import it.
Reading of transcripts does not belong here (`actor_following`).
"""

ROLE = "service"
