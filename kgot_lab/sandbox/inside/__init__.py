"""What is loaded inside the sandbox, and nothing else is; it imports nothing of the parent
(`tests/test_imports.py` says so).
"""
