"""Files beside the notes on disk: finding them, the process that reads them, the store of their texts.

The actor of attachments writes and asks; services read the shelf. `worker` is a program of its own.
Never here: trio, indexes, decisions about what is found.
"""
