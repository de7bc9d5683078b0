"""The models that turn texts into vectors: static models and transformers, with their tokenizers.

The search package and packages in higher layers import this package. Code that stores or searches vectors
must not be here.
"""

ROLE = "index"
