"""The same profile in the kernel's own words: `tc`, `nft` and `ip` lines for a router. Pure."""

from netem.tc.lines import HANDLE, TABLE, Command, Ends, Hop, shell
from netem.tc.planning import Plan, plan, printed

__all__ = ["HANDLE", "TABLE", "Command", "Ends", "Hop", "Plan", "plan", "printed", "shell"]
