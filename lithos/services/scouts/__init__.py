"""The scouts of `lithos_retrieve`: each looks for candidates in a way of its own (memory spec, section 1)."""
