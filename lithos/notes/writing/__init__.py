"""The only writer of notes. It prepares, applies and publishes each change.

This package must not know tools or tokens.
"""

ROLE = "actor"
