"""Settings as declared, and how they are read, checked and listed.

Every package uses it.
Never here: what a setting changes.
"""

ROLE = "settings"
