"""Journal commands, agents and known calls as values.

Its own package and later ones use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
