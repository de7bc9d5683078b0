"""The actor that reads attachments, and the captions of images.

Only the `attachments` package imports this package. It must not change attachments.
"""

ROLE = "actor"
