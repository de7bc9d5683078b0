"""Scoring, fusing and rating of hits.

Its own package and later ones use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
