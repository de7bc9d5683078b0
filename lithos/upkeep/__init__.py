"""Whether all is well, and what to do: checks, health, care, backups, worth.

`lithos.app` alone may enter.
Never here: repairs that nobody asked for.
"""
