"""What one file says, as values that can be kept on file and joined with those of the others."""
