"""Golden texts of this package: compared, or written anew when FABRIC_UPDATE_GOLDEN=1."""

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "intent"


def check_golden(name: str, text: str) -> None:
    """Fails unless `text` is what the golden file holds."""
    file = FOLDER / name
    if os.environ.get("FABRIC_UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
