"""How well searches answer questions of a vault.

Its own package and those after it use it.
Never here: changes of notes.
"""

ROLE = "service"
