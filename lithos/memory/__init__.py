"""Memory of agents: typed edges, retrieval with evidence, briefings and trust.

Later packages use it.
Never here: language models.
"""
