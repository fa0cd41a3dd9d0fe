"""Score: runs, qrels, measures, significance, receipts and reports; knows of no system."""
