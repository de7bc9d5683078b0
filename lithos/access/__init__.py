"""Tokens, OAuth and sign-in, which decide what each caller may do.

Only `vaults` and `app` use it.
Never here: secrets where a hash is enough.
"""
