"""The multilingual model of the accurate tier of Lithos: weights, tokenizer and mean vectors.

Never here: code. `lithos.search.embedding.transformer` loads the files, and only if their hashes are right.
"""
