"""The only writer of notes, which prepares, applies and publishes each change.

This package must not know tools or tokens.
"""

ROLE = "actor"
