"""Formats of other programs, read as values: exported conversations, knowledge graphs, memory files.

The sources of `stores/importing` open the files and make records of what is read here.
Never here: files, and what becomes of a record in this knowledge base.
"""
