"""Operators that ExecuTorch 1.5.1 or Vela 5.1.0 cannot lower, written as others before a model is quantised."""
