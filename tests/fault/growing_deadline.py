"""Tests of deadlines on machines of any load. A deadline has to be short where a test waits until it has passed, but a busy
machine can pass a short one that should not. So a test that fails is tried again with longer ones. A fault of the program
fails with all of them."""

DEADLINES = (2, 10, 60)  # seconds; the last one does not pass by itself


def with_growing_deadline(attempt, deadlines=DEADLINES):
    """attempt(seconds) for one deadline after another, until one attempt succeeds; the error of the last one is raised."""
    *shorter, last = deadlines
    for seconds in shorter:
        try:
            return attempt(seconds)
        except (AssertionError, RuntimeError, ProcessLookupError) as error:
            print(f"tried again with a longer deadline than {seconds} s: {str(error)[:2000]}", flush=True)
    return attempt(last)
