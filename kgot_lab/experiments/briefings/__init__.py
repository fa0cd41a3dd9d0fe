"""A month of invented news, read with errors of known rates: who is told of what, who is not, and whether that is right."""
