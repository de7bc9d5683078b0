"""The texts of Lithos, and the patterns that `docs/style.md` bans in them."""
