"""Memory of agents: typed edges, retrieval with evidence, briefings and trust.

Later packages import this package.
It must not use language models.
"""
