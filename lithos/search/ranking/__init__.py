"""Scoring, fusion and rating of search hits.

`search` and the packages above it import this package.
It must not contain file access, clocks, threads or logs.
"""

ROLE = "model"
