"""Experts over HTTP: the REST API, the OpenAI protocol, MCP tools, and two web pages. The only async modules.
"""
