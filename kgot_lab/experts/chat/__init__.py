"""A question to an expert through eight stages: recall, playbooks, search, prompt, an answer with checked
citations, what is kept.
"""
