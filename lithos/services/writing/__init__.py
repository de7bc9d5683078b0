"""What agents give as the text of a note, understood before it is written, and the ports of notes' services.

Tools call it before they ask for a write; later capabilities fill the ports.
Never here: write rules (actors/writing) or files (stores/notes).
"""
