"""Walk a recorded run again: resume, verify and fork are the same loop over what was recorded."""
