"""What retrieval learns, as values and formulas: edges, salience, receipts, ranking and fusion.

The memory actor stores it; searches and retrieval rank with it.
Never here: stores, scouts or the language model itself.
"""
