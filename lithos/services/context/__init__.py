"""Briefings of agents: candidates of retrieval, their texts, the task and what changed, as one text.

The tool `lithos_context` calls it.
Never here: which passages are shown, which is in `core.context`, or SQL.
"""
