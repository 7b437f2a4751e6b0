"""What users ask for, composed from the floors below."""
