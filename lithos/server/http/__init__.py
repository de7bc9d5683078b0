"""The HTTP server: Hypercorn, the gate, access, limits and the application.

The packages after it in the order of docs/develop.md use it.
Never here: what is served.
"""

ROLE = "pages"
