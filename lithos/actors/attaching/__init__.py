"""Attaching: the actor that keeps the files beside the notes searchable, and the process that reads them.

Services ask the actor; the app makes it; it alone uses the process.
Never here: rankings, notes, libraries that parse files.
"""
