"""Structures in the node distance coordinates delta_ij = r_i - r_j of document 004, in the dense and a sparse form."""
