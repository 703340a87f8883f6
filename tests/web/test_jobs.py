"""Work in the background: it says how far it is, stops when asked, and fails in words."""

from __future__ import annotations

import threading
import time

import pytest

from incrowd.crowd.ingest import Progress
from incrowd.errors import InputError
from incrowd.web.site import MOST_PAGES, Jobs, Latest, Stopped, WebJob


def ended(job: WebJob) -> WebJob:
    for _ in range(1000):
        if job.over:
            return job
        time.sleep(0.005)
    raise AssertionError("the job did not end")


def test_a_job_tells_how_far_it_is_and_keeps_its_result() -> None:
    go, looked = threading.Event(), threading.Event()

    def work(progress: Progress) -> str:
        progress(1, 4, "counting")
        looked.set()
        go.wait(5)
        return "counted"

    jobs = Jobs(2, 10)
    job = jobs.start("Count", "/counts/{id}", work)
    looked.wait(5)
    assert job.to_dict() == {
        "state": "running",
        "what": "counting",
        "share": 0.25,
        "problem": "",
        "url": None,
    }
    go.set()
    assert ended(job).result == "counted"
    assert job.to_dict()["url"] == f"/counts/{job.id}"


def test_a_job_stops_at_its_next_word() -> None:
    started = threading.Event()

    def work(progress: Progress) -> None:
        for _ in range(10_000):
            progress(0, None, "going on")
            started.set()
            time.sleep(0.002)

    job = Jobs(2, 10).start("Long", "/x/{id}", work)
    started.wait(5)
    job.stop()
    assert ended(job).state == "stopped"
    assert job.result is None


def test_a_waiting_job_can_be_stopped_before_it_starts() -> None:
    hold = threading.Event()
    jobs = Jobs(1, 10)
    first = jobs.start("First", "/x/{id}", lambda progress: hold.wait(5))
    second = jobs.start("Second", "/x/{id}", lambda progress: "never")
    second.stop()
    hold.set()
    assert ended(second).state == "stopped"
    assert ended(first).state == "done"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("a.csv: no rows. Check it."), "a.csv: no rows. Check it."),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "out of memory"),
        (ValueError("alice wrote: my secret"), "unexpected ValueError"),
    ],
)
def test_a_failure_is_told_in_words_that_quote_nobody(error: Exception, words: str) -> None:
    def work(progress: Progress) -> None:
        raise error

    job = ended(Jobs(2, 10).start("Fail", "/x/{id}", work))
    assert job.state == "failed"
    assert job.problem.startswith(words)
    assert "secret" not in job.problem


def test_old_results_are_forgotten_running_jobs_never() -> None:
    hold = threading.Event()
    jobs = Jobs(3, 3)
    running = jobs.start("Running", "/x/{id}", lambda progress: hold.wait(5))
    done = [ended(jobs.start(str(k), "/x/{id}", lambda progress: 1)) for k in range(5)]
    assert jobs.get(running.id) is running
    assert jobs.get(done[0].id) is None
    assert jobs.get(done[-1].id) is done[-1]
    hold.set()


def test_a_newer_question_of_the_same_page_stops_the_older_one() -> None:
    latest = Latest()
    first = latest.begin("a page")
    other = latest.begin("another page")
    first(0, None, "going on")
    second = latest.begin("a page")
    with pytest.raises(Stopped):
        first(1, None, "going on")
    second(0, None, "going on")
    other(0, None, "going on")


def test_pages_long_closed_are_forgotten() -> None:
    latest = Latest()
    old = latest.begin("old")
    for number in range(MOST_PAGES):
        latest.begin(f"page {number}")
    with pytest.raises(Stopped):
        old(0, None, "going on")
