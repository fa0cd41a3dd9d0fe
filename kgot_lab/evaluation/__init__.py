"""Evaluation: runs, qrels, measures, significance tests, stored results and reports, for any retriever."""
