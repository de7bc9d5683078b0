"""Reading and searching attachments.

Only the `attachments` package imports this package. It must not change attachments.
"""

ROLE = "service"
