"""Note files as text: the note model, frontmatter, YAML editing, links, paths and source URLs.

Stores, catalogue, actors, services and tools build on it.
Never here: reading or writing files (stores/notes).
"""
