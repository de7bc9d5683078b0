"""How tools are declared, read, admitted, answered and fitted into a size.

The packages after it in the order of docs/develop.md use it.
Never here: what a tool does.
"""

ROLE = "tools"
