"""Linear models of robots of every kind, their discretisations and their modes."""
