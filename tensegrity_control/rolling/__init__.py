"""Rolling of free structures: one roll, what rolls come of it in a model, and which of them lead to a position."""
