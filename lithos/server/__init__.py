"""How clients and people reach Lithos: HTTP, MCP, tools, the console and commands.

`lithos.app` alone may enter.
Never here: what a capability does.
"""
