"""Scoring, fusion and rating of search hits.

The search package and packages in higher layers import this package. It must not contain file access, clocks,
threads or logs.
"""

ROLE = "model"
