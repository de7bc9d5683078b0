"""The only writer of notes, which prepares, applies and publishes each change.

The package `notes` and later packages use this package.
Never here: tools and tokens.
"""

ROLE = "actor"
