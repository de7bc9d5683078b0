"""How tools are declared, called and answered, and how answers are fitted into a size.

Its own package and later ones use it.
Never here: the work of a tool.
"""

ROLE = "tools"
