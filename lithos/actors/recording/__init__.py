"""Recording versions: what writes `history.db`, for the writer and for what happened without it.

The actors of notes reach it by `VersionRecorder`; the start settles what the last run left.
Never here: changes of notes or of the catalogue.
"""
