"""The cases, a file for each table."""
