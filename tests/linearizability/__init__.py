"""Whether what clients saw of notes and tasks can be explained by changes that happened one at a time.

`checker.py` decides it for a history and a model; `models.py` says what notes and tasks do; `workload.py` has
clients and a person who edits files, `campaign.py` kills and pauses; `python -m tests.linearizability
--minutes N` goes on for longer than the suite does.
"""
