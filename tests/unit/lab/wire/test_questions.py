"""What another thread asks of the forwarding thread is done and answered, or neither."""

import threading

import pytest

from fabric.lab.wire.questions import Questions


def test_question_that_nobody_came_to_is_never_done() -> None:
    questions, done = Questions(), list[int]()
    with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
        questions.ask(lambda: done.append(1), 0.01)
    questions.answer()
    assert done == []
    questions.close()


def test_question_that_has_begun_is_answered_however_late() -> None:
    """Else a fault would be in force whose number nobody was told."""
    questions, begun, may_end = Questions(), threading.Event(), threading.Event()
    found = list[int]()

    def act() -> int:
        begun.set()
        may_end.wait(10)
        return 7

    def forward() -> None:
        while not begun.is_set():
            questions.answer()

    threads = [
        threading.Thread(target=forward),
        threading.Thread(target=lambda: found.append(questions.ask(act, 0.05))),
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    threads[1].join(0.2)  # longer than its patience
    may_end.set()
    for thread in threads:
        thread.join(10)
    assert found == [7]
    questions.close()
