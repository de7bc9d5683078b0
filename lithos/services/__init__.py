"""Use cases over mailboxes and read handles."""
