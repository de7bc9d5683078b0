"""Tokens, OAuth and sign-in: which caller may do what.

Only `vaults` and `app` use it.
Never here: secrets where a hash is enough.
"""
