"""From a module to a `.pte`: the steps, the facts recorded while they run, and what makes them faster."""
