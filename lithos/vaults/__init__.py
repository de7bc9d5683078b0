"""Several vaults in one process: asking all, moving notes between them.

`lithos.app` alone uses it.
Never here: what one vault decides.
"""
