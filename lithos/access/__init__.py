"""Tokens, OAuth and login, which decide the rights of each caller.

Only `vaults` and `app` import this package.
It must not store a secret where a hash is enough.
"""
