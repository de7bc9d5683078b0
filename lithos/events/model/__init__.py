"""Value types for journal commands, agents and known calls.

`lithos.events` and later packages use this package. The package must not use files, clocks, threads or logs.
"""

ROLE = "model"
