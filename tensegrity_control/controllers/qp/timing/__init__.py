"""When commands act: late states, pending commands, and the bandwidth that they leave."""
