"""`lithos bundle`: the forms in which Lithos is published, made from this version.

`lithos.cli` dispatches to it.
Never here: publishing; nothing is sent anywhere.
"""
