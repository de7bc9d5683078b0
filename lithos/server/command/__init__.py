"""The shell of the command line: how a command is declared, and what was typed.

Commands of every capability may enter.
Never here: a command.
"""
