"""Does the graph pay? The same questions answered with and without it, at the same model, by a plan that was
written before.
"""
