"""Clients of servers: an exchange that ends, and the way through proxies."""
