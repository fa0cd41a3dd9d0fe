"""Find: lanes that rank documents, what joins them, and walks over graphs."""
