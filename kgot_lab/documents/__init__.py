"""Read folders and files into documents and passages."""
