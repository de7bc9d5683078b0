"""Whether what clients saw of notes and tasks can be explained by changes that happened one at a time.

`checker.py` decides it for a history and a model; `models.py` models notes and tasks; `workload.py` has
clients and a person who edits files, `campaign.py` kills and pauses; `python -m tests.linearizability
--minutes N` runs for longer than the suite does.
"""
