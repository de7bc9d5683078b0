"""Commands of the journal, and what is kept of calls and agents.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
