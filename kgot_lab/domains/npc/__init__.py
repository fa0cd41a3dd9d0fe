"""A world of characters in tables: entities and relationships, where these come from, and what each character may know of it."""
