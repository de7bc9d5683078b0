"""Scoring, fusion and rating of hits.

Search and later packages use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
