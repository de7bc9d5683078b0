"""Declaration and calls of tools, their answers, and the size limit of answers.

Only the server package and packages in higher layers import this package. Never here: the work of a tool.
"""

ROLE = "tools"
