"""KG-OS: schemas, query methods, extraction, a query interface and editing over knowledge graphs."""
