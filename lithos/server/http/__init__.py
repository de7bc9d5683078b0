"""HTTP server: Hypercorn, access control, limits and the ASGI application.

Only the server package and packages in higher layers import this package.
Never here: the content of an endpoint.
"""

ROLE = "pages"
