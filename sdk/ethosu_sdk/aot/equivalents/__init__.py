"""Replaces operators that ExecuTorch 1.5.1 or Vela 5.1.0 cannot lower by equivalent ones, before quantisation."""
