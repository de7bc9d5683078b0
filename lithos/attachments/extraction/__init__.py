"""The actor that reads attachments, and image captions.

Only its own package imports this package.
It must not change attachments.
"""

ROLE = "actor"
