"""Small private files of who gets in: registered clients, login links; how grants are rows of `tokens.json`.

The token store, the services of OAuth and commands enter. Every function may block.
Never here: secrets, of which only hashes are kept, or decisions about requests.
"""
