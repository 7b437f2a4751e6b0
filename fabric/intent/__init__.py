"""What is wanted: models, and the loader that reads them from an Ansible inventory."""
