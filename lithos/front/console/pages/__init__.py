"""The pages of the console, one noun a module; each has `add_routes(console, app)`.

A page gets its data by `console.call` (a tool, exactly as an agent sees it) or from a service of
`ConsoleParts`. A change is a POST under `console.change`. No page reads a database or a file itself.
"""
