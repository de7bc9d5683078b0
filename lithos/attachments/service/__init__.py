"""Reading and searching of attachments.

Only its own package uses it.
Never here: changes of these files.
"""

ROLE = "service"
