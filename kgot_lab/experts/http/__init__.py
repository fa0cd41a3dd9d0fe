"""Experts over HTTP: the REST API, the OpenAI protocol, MCP tools, and two web pages.

These are the only async modules.
"""
