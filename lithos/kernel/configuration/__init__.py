"""Registry of all settings, and the code that reads, checks and lists them.

Used by this package and by the packages above it. The effect of a setting is implemented elsewhere.
"""

ROLE = "settings"
