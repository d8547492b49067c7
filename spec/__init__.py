"""What is true: the specification of the five-state cache machine, standard library only."""
