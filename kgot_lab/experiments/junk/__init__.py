"""How much of what a memory writes is junk: facts that a model takes from messages and no sentence of them
says.
"""
