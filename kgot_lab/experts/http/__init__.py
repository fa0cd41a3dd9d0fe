"""Doors to experts over HTTP: the REST API, the protocol of OpenAI, tools for assistants, and two pages. The
only async files.
"""
