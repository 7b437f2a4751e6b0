"""What a device says, made fit for people and terminals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.push.words import hide_secrets, plain, refused_control, safe


@given(st.text())
def test_plain_text_holds_nothing_that_moves_a_cursor(text: str) -> None:
    assert all(character.isprintable() or character == "\n" for character in plain(text))


def test_plain_text_drops_terminal_sequences_and_keeps_lines() -> None:
    assert plain("\x1b[2J% Invalid input\r\nat 'x'\x07\r\n") == "% Invalid input\nat 'x'"


def test_a_flood_is_cut_and_says_so() -> None:
    assert plain("x" * 30, limit=10) == "xxxxxxxxxx … (20 characters more)"


@pytest.mark.parametrize(
    "line",
    [
        "username admin secret sha512 $6$canary",
        " enable password canary",
        "snmp-server community canary ro",
        '  "password": "canary",',
        "   neighbor 10.0.0.1 password 7 canary",
        '"auth_key": "canary"',
        "radius-server host 10.0.0.9 key 7 canary",
        '"snmp_password": "canary"',
        "tacacs_passkey canary",
    ],
)
def test_what_follows_a_secret_word_is_hidden(line: str) -> None:
    hidden = hide_secrets(f"interface Ethernet1\n{line}\n   mtu 9214")

    assert "canary" not in hidden
    assert hidden.startswith("interface Ethernet1\n")
    assert hidden.endswith("\n   mtu 9214")


def test_a_terminal_sequence_does_not_protect_a_secret() -> None:
    assert safe("\x1b[31mpassword\x1b[0m canary \x1b]0;title\x07") == "password <hidden>"


def test_lines_without_a_secret_word_stay() -> None:
    text = "qos map dscp 26 to traffic-class 3\n   priority-flow-control priority 3 no-drop"

    assert hide_secrets(text) == text


@pytest.mark.parametrize("line", ["a\nb", "a\rb", "a\tb", "a\x1b[A", "a\x00", "a\u2028b", "what?", "a\x03"])
def test_a_line_with_a_control_character_or_a_question_mark_must_not_be_typed(line: str) -> None:
    assert refused_control(line)


@pytest.mark.parametrize("line", ["interface Ethernet1/1", "   description to gpu-1 (rack 4)", "x; reboot", "ü"])
def test_an_ordinary_line_may_be_typed(line: str) -> None:
    assert refused_control(line) == ""


def test_our_own_words_on_a_host_key_stay_readable() -> None:
    told = "the SSH host key of 192.0.2.1 port 22 has CHANGED: another machine answers"

    assert safe(told) == told
    assert safe("ssh-key AAAA") == "ssh-key <hidden>"
