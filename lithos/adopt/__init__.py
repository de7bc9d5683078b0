"""Adoption of the memory folders of agent clients: their files are notes of the vault, in place.

Only `app` uses this package.
It must not change a file of a client, unless a setting asks for it.
"""
