"""Value types for journal commands, agents and known calls.

Its own package and later packages use this package. It must not use files, clocks, threads or logs.
"""

ROLE = "model"
