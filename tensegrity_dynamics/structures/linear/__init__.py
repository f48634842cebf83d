"""Linear models of structures: exact sparse Jacobians of the full model, and its modes."""
