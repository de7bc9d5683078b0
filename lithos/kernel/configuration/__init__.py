"""The registry of settings, and how they are read, checked and listed.

Its own package and later packages import this package.
It must not implement the effect of a setting.
"""

ROLE = "settings"
