"""How the emulated EOS says no."""

__all__ = ("INCOMPLETE", "INVALID", "Refusal", "misfit")

INVALID = "% Invalid input"  # source: switches.md section 3 (error pattern `% Invalid`)
INCOMPLETE = "% Incomplete command"  # EOS manual, "Command-Line Interface" (unconfirmed)


class Refusal(Exception):  # noqa: N818 - the device's word for it, not an error of this program
    """The device refuses; the text is what it prints."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def misfit(line: str, at: int, indent: int) -> Refusal:
    """Returns the refusal of a line whose token number `at` does not fit, `indent` being the prompt's length.

    The caret line is as in other CLIs of this family (unconfirmed for EOS).
    """
    tokens = line.split()
    if at >= len(tokens):
        return Refusal(INCOMPLETE)
    column, rest = 0, line
    for token in tokens[: at + 1]:
        column += rest.index(token)
        rest = line[column + len(token) :]
        start = column
        column += len(token)
    return Refusal(f"{' ' * (indent + start)}^\n{INVALID}")
