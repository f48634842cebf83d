"""Node distances: structures in the coordinates delta_ij = r_i - r_j of document 004, the paper's and sparse ones."""
