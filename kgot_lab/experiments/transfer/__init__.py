"""Does what was learnt on some sets of analogies hold on one that was never seen?"""
