"""Experts: a persona bound to graphs, asked by chat, whose answers cite nodes that are checked."""
