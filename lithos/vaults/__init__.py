"""Several vaults in one process.

`lithos.app` alone may enter.
Never here: what one vault does by itself.
"""
