"""Synchronous storage: the only importers of tantivy, usearch, apsw and model2vec."""
