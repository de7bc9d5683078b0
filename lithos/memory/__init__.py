"""What is learned from use: typed edges, retrieval with evidence, briefings and trust.

`lithos.app` alone may enter.
Never here: a language model.
"""
