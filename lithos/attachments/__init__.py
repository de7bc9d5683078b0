"""Files of the vault that are not notes: reading, searching and showing them.

Only `app` uses it.
Never here: changes of these files.
"""
