"""unittest.main() for tests that wait for most of their time: several run at the same time, each on a thread of its own. A test
must not share files or variables with another one. Arguments: names of classes or tests; none: all."""

import concurrent.futures
import sys
import time
import unittest


def _tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _tests_of(item)
        else:
            yield item


def _run(test):
    result = unittest.TestResult()
    began = time.monotonic()
    test.run(result)
    return test, result, time.monotonic() - began


def main(at_once):
    """Runs the tests of __main__, prints a line for each and the errors; exits with 1 if one failed or none ran."""
    loader, module = unittest.TestLoader(), sys.modules["__main__"]
    suite = loader.loadTestsFromNames(sys.argv[1:], module) if sys.argv[1:] else loader.loadTestsFromModule(module)
    tests = list(_tests_of(suite))
    good = bool(tests)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed([pool.submit(_run, test) for test in tests]):
            test, result, seconds = done.result()
            skipped = [reason for _, reason in result.skipped]
            word = f"skipped: {skipped[0]}" if skipped else "ok" if result.wasSuccessful() else "FAILED"
            print(f"{test.id()} ... {word} ({seconds:.1f} s)", flush=True)
            for _, text in result.failures + result.errors:
                print(text, flush=True)
            good = good and result.wasSuccessful()
    sys.exit(0 if good else 1)
