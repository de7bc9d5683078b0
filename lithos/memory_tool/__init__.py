"""Backend of the memory tool of Anthropic's API (`memory_20250818`): Claude's memory files, kept by Lithos.

Programs that use the Anthropic SDK import this package, and no other package of Lithos does.
It must not import the Anthropic SDK unless the SDK is installed, and it must not open a vault.
"""

from lithos.memory_tool.tool import AsyncLithosMemory, LithosMemory, MemoryToolError

__all__ = ["AsyncLithosMemory", "LithosMemory", "MemoryToolError"]
