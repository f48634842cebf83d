"""Quadratic programs of control: problems, solvers by name, null space, relaxation of infeasible problems."""
