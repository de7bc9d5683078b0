"""Every version of every note, and the way back: restoring, undoing, conflict copies.

`lithos.app` alone may enter.
Never here: changes of notes past their writer.
"""
