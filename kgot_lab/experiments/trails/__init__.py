"""What a trail learns from, and how well it does on what it was not learnt on."""
