"""Rows of answers, a module for each owner of values.

Tools build on it; it registers with `lithos.tools.contract.rows` what a row says otherwise than its value.
Never here: a tool, or a query.
"""
