"""Weights and scales: from compressed streams to arrays that the operators can use."""
