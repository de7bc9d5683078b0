"""Upkeep of an installation: checks, health, note care, backups and usage counts.

Only `vaults` and `app` use it.
Never here: repairs without the operator's consent.
"""
