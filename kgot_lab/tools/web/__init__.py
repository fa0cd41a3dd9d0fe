"""Polite web access: search, fetch and browse, on the web or in a local mirror."""
