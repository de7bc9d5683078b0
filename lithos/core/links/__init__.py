"""Where links are in the text of files: their forms in Markdown, in properties and on canvases; what is code.

`core.notes.links` and `core.notes.link_edit` build on the forms, the writer and its planning on canvases.
Never here: what a link means, which is up to the table of all notes (`core.notes.links`), or files.
"""
