"""Community SONiC: config_db.json, generic config updater."""
