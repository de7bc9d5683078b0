"""Trio tasks that each own one kind of mutable state and take messages from a bounded mailbox."""
