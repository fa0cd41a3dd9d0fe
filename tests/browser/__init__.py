"""Tests in a real browser: JupyterLab and Chromium are started once for this folder, and nothing outside this
computer can be reached.
"""
