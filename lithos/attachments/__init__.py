"""Reading, searching and displaying files of the vault that are not notes.

Only `app` imports this package.
It must not change these files.
"""
