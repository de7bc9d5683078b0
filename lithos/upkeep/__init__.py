"""Whether all is well, and what to do: checks, health, care, backups, worth.

`lithos.app` alone uses it.
Never here: repairs that nobody asked for.
"""
