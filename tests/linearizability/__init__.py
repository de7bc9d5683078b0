"""Checks whether sequential changes can explain what concurrent clients saw of notes and tasks.

`checker.py` decides this for a history and a model. `models.py` models notes and tasks. `workload.py`
contains the clients and a person who edits files. `campaign.py` kills and pauses servers. `python -m
tests.linearizability --minutes N` runs longer than the test suite.
"""
