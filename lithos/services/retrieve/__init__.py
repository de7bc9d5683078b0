"""Retrieval that learns: scouts, candidates, ranking, receipts and feedback.

The retrieve tool and completion of tasks call it.
Never here: SQL, or changes of state past the memory actor.
"""
