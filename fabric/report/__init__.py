"""A run folder as JSON, HTML and JUnit."""
