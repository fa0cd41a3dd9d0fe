"""The KG-OS benchmark on the curated graph: its configurations, their claims, intents, and a fusion that is
learnt.
"""
