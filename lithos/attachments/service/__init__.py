"""Reading and searching of attachments.

Only its own package imports this package.
It must not change attachments.
"""

ROLE = "service"
