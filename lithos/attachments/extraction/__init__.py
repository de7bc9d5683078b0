"""The actor that has files read, and the captions of images.

Only its own package uses it.
Never here: changes of these files.
"""

ROLE = "actor"
