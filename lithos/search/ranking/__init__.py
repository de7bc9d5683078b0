"""Scoring, fusion and rating of search hits.

The search package and later packages use this package. File access, clocks, threads and logs do not belong
here.
"""

ROLE = "model"
