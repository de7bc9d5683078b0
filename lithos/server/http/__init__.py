"""The HTTP server: Hypercorn, the gate, access, limits and the application.

Its own package and later ones use it.
Never here: the content of an endpoint.
"""

ROLE = "pages"
