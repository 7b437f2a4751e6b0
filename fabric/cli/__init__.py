"""argv in, exit codes and text out. No logic."""

__all__ = ("main",)


def main() -> None:
    """Runs `fabricctl` with the arguments of this process."""
    from fabric.cli.app import app  # lazy: typer, 0.2 s; importing `fabric.cli` stays cheap

    app()
