"""The state of an installation: checks, health, care, backups and worth.

Only `vaults` and `app` use it.
Never here: repairs without the operator's consent.
"""
