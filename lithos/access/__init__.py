"""Access control: tokens, OAuth and login, which determine the rights of each caller.

Only `vaults` and `app` import this package. It must not store a secret if a hash is enough.
"""
