"""The rules, one module a theme."""
