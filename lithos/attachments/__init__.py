"""Files that are no notes: reading, searching and showing them.

`lithos.app` alone uses it.
Never here: changes of files.
"""
