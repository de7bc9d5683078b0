"""Tokens, OAuth and sign-in, which decide what each caller may do.

Only `vaults` and `app` import this package.
It must not store a secret where a hash is enough.
"""
