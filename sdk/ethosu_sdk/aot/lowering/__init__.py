"""From a module to a `.pte`: the steps, what is known while they run, and what makes them faster."""
