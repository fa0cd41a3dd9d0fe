"""What lies on the graph of a world: a log of its sessions, texts with vectors, and both searched as one of those in it may."""
