"""Values of the journal: agents and their accesses, calls, retention, and rows that imports carry over.

Never here: tasks, proposals or notes.
"""
