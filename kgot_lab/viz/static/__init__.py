"""Static pictures and tables, which are shown wherever a notebook is read."""
