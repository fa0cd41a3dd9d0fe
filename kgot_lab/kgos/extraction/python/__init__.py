"""Read Python: what each module defines, and what its code calls across all modules."""
