"""Reading folders and files into documents and passages."""
