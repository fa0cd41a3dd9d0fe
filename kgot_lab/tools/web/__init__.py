"""Look things up on the web, politely: search, fetch, turn the pages; or in a folder that stands in for it."""
