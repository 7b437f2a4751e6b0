"""The ways out: the one SSH client and the one ansible-runner wrapper."""
