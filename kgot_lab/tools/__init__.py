"""Tools that the loop may call for facts."""
