"""Files, HTTP and processes: reading and writing safely."""
