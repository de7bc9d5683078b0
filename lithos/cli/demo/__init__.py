"""`lithos demo`: two agents at work, shown call by call; with `--stay` a scripted day for the console.

Entered by cli/__init__.
Never here: a real data directory; everything happens in a temporary folder.
"""
