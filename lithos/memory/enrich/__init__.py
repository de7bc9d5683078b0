"""Work in the background: entities, provenance, questions.

Its own package and those after it use it.
Never here: answers to clients.
"""

ROLE = "service"
