"""What the test programs of the Python package share."""


def refused(kind, words, call):
    """Asserts that a call raises an exception of this kind, with these words."""
    try:
        call()
    except kind as error:
        assert words in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__}")
