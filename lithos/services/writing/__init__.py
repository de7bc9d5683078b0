"""What agents give as the text of a note, understood before it is written: whole files, texts that were cut.

Tools call it before they ask for a write.
Never here: write rules (actors/writing) or files (stores/notes).
"""
