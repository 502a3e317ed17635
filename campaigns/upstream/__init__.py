"""Upstream's own Arm tests, as the executorch wheel ships them, on the launchers and the resident firmware.

The tests run unmodified, from the installed wheel. They look for Arm's FVPs on PATH and for a semihosting
executor_runner below $EXECUTORCH_ROOT: there they find the SDK's.
"""
