"""Synchronous storage: the only importers of tantivy, usearch, rustworkx, apsw, model2vec and onnxruntime.

Actors change stores; services read them through handles. Every method may block.
Never here: trio, mailboxes, or decisions about requests.
"""
