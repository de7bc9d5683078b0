"""The watcher actor: notices what other programs do to the notes, and the deletion guard.

It runs by itself and hands what it saw to the writer.
Never here: changes of the catalogue or of files.
"""
