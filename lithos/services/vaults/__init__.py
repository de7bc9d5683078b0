"""Several vaults in one process: what is asked of more than one of them (docs/spec/vaults.md).

Tools, the front and the composition ask it for the vaults that a caller may use.
Never here: what one vault does alone; nothing of a vault is kept here.
"""
