"""Rolling of free structures: a single roll, the map of possible rolls, and the search for a goal position."""
