"""The state of the GPUs while something runs: clocks, power, temperature, reasons of throttling."""
