"""HTTP server: Hypercorn, access control, limits and the ASGI application.

Only the server package and the packages above it import this package. Never here: the content of an endpoint.
"""

ROLE = "pages"
