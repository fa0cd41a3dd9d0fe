"""Answer a question to an expert in eight stages: recall, playbooks, search, prompt, streamed answer, checked
citations, storage.
"""
