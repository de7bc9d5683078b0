"""HTTP server: Hypercorn, access control, limits and the ASGI application.

This package and the packages above it may use Hypercorn. The content of endpoints belongs to other packages.
"""

ROLE = "pages"
