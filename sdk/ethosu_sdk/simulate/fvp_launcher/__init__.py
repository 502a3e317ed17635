"""Programs that replace Arm's FVPs: they accept the FVPs' command line and run QEMU with the SDK's NPU model.

A second front door beside `cli`, kept apart from it for its start-up time: test suites start it thousands of
times.
"""
