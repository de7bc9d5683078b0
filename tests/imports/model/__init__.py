"""How other programs' formats are read as values."""
