"""What is learned from use: typed edges, retrieval with evidence, briefings and trust.

The packages after it in the order of docs/develop.md use it.
Never here: a language model.
"""
