"""Use cases of search: hybrid, graph, similar notes and answers.

Its own package and later ones use it.
Never here: changes of an index.
"""

ROLE = "service"
