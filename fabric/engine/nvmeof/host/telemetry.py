"""What a queue counts and never decides by."""

from dataclasses import dataclass

__all__ = ("Telemetry",)


@dataclass(slots=True)
class Telemetry:
    """What is counted and decides nothing.

    Attributes:
        sqhd: the last head that the target reported.
        late: answers that came after their command had timed out.
        answers: all answers.
    """

    sqhd: int = 0
    late: int = 0
    answers: int = 0
