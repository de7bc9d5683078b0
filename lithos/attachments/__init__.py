"""Files that are no notes: reading, searching and showing them.

`lithos.app` alone may enter.
Never here: changes of files.
"""
