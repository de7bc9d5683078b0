"""The registry of settings, and the code that reads, checks and lists them.

This package and the packages above it use the settings modules. This package must not implement the effect of
a setting.
"""

ROLE = "settings"
