"""Briefings: what is gathered for a question.

Its own package and those after it use it.
Never here: ranking.
"""

ROLE = "service"
