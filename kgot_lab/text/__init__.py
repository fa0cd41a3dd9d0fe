"""Name what is in a text: words, stems, sentences, tokens; and make it fit to be written or shown."""
