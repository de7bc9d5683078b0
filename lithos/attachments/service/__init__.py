"""What is asked of attachments: reading and searching.

Its own package and those after it use it.
Never here: changes of files.
"""

ROLE = "service"
