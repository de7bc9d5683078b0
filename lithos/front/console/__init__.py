"""The web console: pages for the person who answers for the agents (console spec), their sessions and looks.

Entered by app/console; templates and static files lie beside the modules.
Never here: what pages show (services, tools), nor any database.
"""
