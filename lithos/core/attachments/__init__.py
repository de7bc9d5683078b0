"""Files beside the notes, as values: their kinds, their text in parts, where hits stand among notes.

Whoever finds, reads, indexes or shows attachments may enter; each module is a kind of file or a rule.
Never here: open files, libraries that parse PDF, other processes.
"""
