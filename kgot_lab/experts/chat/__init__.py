"""Answer a question to an expert in eight stages, from intake to stored answer.

Stages: intake, recall, playbooks, search and context, streamed answer, checked citations, storage.
"""
