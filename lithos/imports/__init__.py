"""Import of notes from other programs and from files.

Only `app` imports this package.
It must not change notes without the note writer.
"""
