"""Notes and their files: reading, writing, watching and moving them; links between them.

`lithos.app` alone may enter.
Never here: who is asking, tools, pages or commands.
"""
