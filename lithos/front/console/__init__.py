"""The web console: pages for the person who answers for the agents (console spec).

`console` serves the pages of `pages/`, which ask the tools and services and never a database; `sessions`
knows who is there. Templates and static files lie beside them. Nothing outside `app/front` imports this folder.
"""
