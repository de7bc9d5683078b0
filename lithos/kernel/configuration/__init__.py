"""The registry of settings, and how they are read, checked and listed.

Its own package and later ones use it.
Never here: the effect of a setting.
"""

ROLE = "settings"
