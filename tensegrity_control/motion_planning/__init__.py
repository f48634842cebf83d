"""Plans of torque-controlled motions and the feedback that belongs to them."""
