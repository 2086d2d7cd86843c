"""What holds for all tests."""

import signal

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that: the tests of Ctrl-C would wait
# for an interruption that never comes.
signal.signal(signal.SIGINT, signal.default_int_handler)
