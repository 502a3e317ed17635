"""Programs that stand in for Arm's FVPs: the FVPs' command line, QEMU and the SDK's NPU model behind it.

A second front door beside `cli`, kept apart from it for its start-up time: test suites start it thousands of times.
"""
