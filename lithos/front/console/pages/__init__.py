"""The pages of the console, one noun a module, which ask tools and the services.

Entered by app/front through each module's `add_routes`; a change is a POST under `console.change`.
Never here: a database, a file, HTML in Python.
"""
