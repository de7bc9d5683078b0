"""Reading, searching and showing files of the vault that are not notes.

Only `app` uses it.
Never here: changes of these files.
"""
