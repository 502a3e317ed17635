"""Published runs of Ethos-U NPUs, rebuilt, priced by Vela and by the NPU model, and compared."""
