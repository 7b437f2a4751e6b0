"""What a command of a model host answers."""

from fabric.remote.ssh import ExecResult

OK = ExecResult(0, "", "")
FULL = "No space left on device"


def failed(text: str, status: int = 1) -> ExecResult:
    return ExecResult(status, "", text)
