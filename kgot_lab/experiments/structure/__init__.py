"""Can a system tell that two texts share a mechanism?"""
