"""The ring of tokens and the authorization server.

Its own package and those after it use it.
Never here: what a tool does.
"""

ROLE = "service"
