"""Words, stems, sentences and tokens of texts, and cleaning for output."""
