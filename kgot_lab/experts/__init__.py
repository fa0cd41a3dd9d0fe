"""Experts: personas bound to graphs, whose answers in a chat cite verified nodes."""
