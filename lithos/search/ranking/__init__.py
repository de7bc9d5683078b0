"""Scoring, fusion and rating of search hits.

The search package and later packages use this package.
It must not contain file access, clocks, threads or logs.
"""

ROLE = "model"
