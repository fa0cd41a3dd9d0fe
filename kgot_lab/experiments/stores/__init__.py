"""How fast are the stores, and what do they survive?"""
