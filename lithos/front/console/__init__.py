"""The web console: pages for the person who answers for the agents, their sessions and looks.

Specified in docs/spec/console.md.

Entered by app/front; templates and static files lie beside the modules.
Never here: what pages show (services, tools), nor any database.
"""
