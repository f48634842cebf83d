"""Where the output cannot go on: ends of actuators and cables, singular positions, tension floors."""
