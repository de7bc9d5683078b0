"""The ring of tokens, and the authorization server.

Its own package and `vaults` use it.
Never here: the work of a tool.
"""

ROLE = "service"
