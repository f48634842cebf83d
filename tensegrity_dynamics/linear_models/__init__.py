"""Linear models of all kinds of robots, their discretisations and their modes."""
