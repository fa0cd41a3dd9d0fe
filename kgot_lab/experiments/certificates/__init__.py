"""Does a certificate say so: a gold passage taken away, a contradicting one put in, and what the certificates
of the answers tell.
"""
