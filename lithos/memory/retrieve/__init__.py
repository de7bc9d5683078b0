"""Retrieval with evidence, and what is learned from citations.

Its own package and those after it use it.
Never here: changes of notes.
"""

ROLE = "service"
