"""The actor that reads attachments, and image captions.

Only its own package uses it.
Never here: changes of these files.
"""

ROLE = "actor"
