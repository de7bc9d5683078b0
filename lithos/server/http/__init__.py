"""HTTP server: Hypercorn, access control, limits and the ASGI application.

Importers: the server package and packages above it.
Never here: the content of an endpoint.
"""

ROLE = "pages"
