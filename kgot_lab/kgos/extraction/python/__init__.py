"""Read Python: what a module defines, and what its code calls, over all modules together."""
