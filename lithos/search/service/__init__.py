"""What is asked of searches: hybrid, graph, similar notes, answers.

Its own package and those after it use it.
Never here: changes of an index.
"""

ROLE = "service"
