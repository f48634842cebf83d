"""Start-up: simulation of the motion from rough nodes and a desired pretension to rest (003, section 3.6.3).

Every tendon and spring starts at its initial length, without tension, and its rest length moves to

    d = length at the start - T0 / K

along a ramp, so that no large force appears suddenly. Velocities are set to zero whenever the kinetic energy has a peak
("kinetic energy damping"), which is faster than dissipation by dampers. The final tensions differ from T0, because the
structure moves while it is tightened. `equilibrium_solver` finds the same equilibrium without simulation, and usually
faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...numerics.compilation import compiled
from ...robots.robot import Robot
from ...simulation_interface import POSITION
from ..structure import Structure
from .explicit_integrators import rattle
from .point_masses import COMPLETED, FRICTION_STEP, accelerations
from .rod_masses import kinetic_energy
from .structure_simulator import StructureSimulator

STEPS_PER_CALL = 2000
STICKING = 1e-6
"""Factor on the regularisation speed of the ground during start-up, so that feet on a slope creep slowly enough to
count as resting."""


@dataclass(frozen=True, eq=False)
class StartUp:
    """Structure at rest after the start-up.

    Attributes:
        nodes: (n, 3) m. rest_lengths, lengths: (m,) m. tensions: (m,) N, negative in compression.
        residual: largest remaining out-of-balance force [N]. slack: names of tendons and springs without tension.
        steps: number of steps. time_step: step [s]. peaks: number of kinetic energy peaks at which velocities were set
            to zero.
    """

    nodes: NDArray[np.float64]
    rest_lengths: NDArray[np.float64]
    lengths: NDArray[np.float64]
    tensions: NDArray[np.float64]
    residual: float
    slack: tuple[str, ...]
    steps: int
    time_step: float
    peaks: int


@compiled
def start_up_steps(plant, step, goal, pace, zeroes, holds, tolerance, count, state):
    """Make up to `count` steps in place; returns (status, number of steps, whether it is at rest).

    Args:
        goal: (m,) final rest lengths [m]. pace: (m,) largest change in each step [m].
        zeroes: whether velocities are set to zero at peaks of the kinetic energy.
        holds: whether static friction of feet is included in the force balance.
        state: (3,) kinetic energy of the last step [J], number of peaks, last evaluated residual [N].
    """
    network, work, no_set_points = plant.network, plant.work, state[:0]
    nodes, velocities, rest_lengths = plant.nodes, plant.velocities, plant.rest_lengths
    for done in range(count):
        arrived = True
        for k in range(goal.shape[0]):
            change = goal[k] - rest_lengths[k]
            if abs(change) > pace[k]:
                change = pace[k] if change > 0.0 else -pace[k]
                arrived = False
            rest_lengths[k] += change
        status = rattle(plant, POSITION, no_set_points, step, 1)
        if status != COMPLETED:
            return status, done, False
        energy = kinetic_energy(network, velocities)
        peaks = energy < state[0]
        state[0] = energy
        if zeroes and peaks:
            velocities[:, :] = 0.0
            state[0] = 0.0
            state[1] += 1.0
        if arrived and (peaks or energy == 0.0):
            work.horizon[FRICTION_STEP] = step if holds else 0.0
            accelerations(network, nodes, velocities, rest_lengths, work)
            largest = 0.0
            for i in range(nodes.shape[0]):
                for a in range(3):
                    largest = max(largest, abs(network.node_masses[i] * work.acceleration[i, a]))
            state[2] = largest
            if largest <= tolerance and energy <= 1e-6 * tolerance:
                return COMPLETED, done + 1, True
    return COMPLETED, count, False


def start_up(
    structure: Structure,
    pretension: float | None = None,
    *,
    start: ArrayLike | None = None,
    ramp: float | None = None,
    zero_velocities: bool = True,
    tolerance: float | None = None,
    maximum_steps: int = 2_000_000,
    time_step: float | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> StartUp:
    """Tighten a structure from rough nodes until it is at rest.

    Args:
        structure: structure; bars are rigid, its gravity and ground act.
        pretension: T0 of every tendon and spring [N]; by default the final rest lengths are those of the structure.
        start: (n, 3) start nodes [m], by default those of the structure; bars are brought to their lengths.
        ramp: duration of the change of the rest lengths [s]; zero sets them at once; by default twenty shortest
            periods.
        zero_velocities: whether velocities are set to zero at peaks of the kinetic energy; else only dampers dissipate.
        tolerance: out-of-balance force [N]; by default 1e-9 of the stiffness of the stiffest tendon times its length.
        maximum_steps: number of steps after which NoEquilibriumError is raised.
        time_step: step [s], by default a twentieth of the shortest period.
        progress: function called at intervals with the number of steps and the out-of-balance force [N].

    Raises:
        TensegrityError: a pretension would need a rest length that is not positive (the message contains the member),
            friction does not hold the structure on its slope, an option is out of range, or steps are too long.
        NoEquilibriumError: the structure is not at rest after the last step.
    """
    for what, value in (("ramp", ramp), ("tolerance", tolerance), ("pretension", pretension)):
        if value is not None and not (np.isfinite(value) and value >= 0.0):
            raise TensegrityError(f"{what} is {value}, must be a finite number, zero or more.")
    ground = structure.ground
    steep = 0.0 if ground is None else abs(np.tan(ground.slope))
    if ground is not None and steep > 0.0 and ground.friction <= steep and not structure.fixed.any():
        raise TensegrityError(
            f"start-up: on a slope of {np.degrees(ground.slope):.4g} deg a friction of {ground.friction:g} holds "
            f"nothing, so it never comes to rest; more than {steep:.3g} does."
        )
    holds = False
    if ground is not None and ground.friction > 0.0 and (ground.slope != 0.0 or ground.hills is not None):
        # on level ground feet slide until no force acts on them
        structure = replace(structure, ground=replace(ground, friction_speed=STICKING * ground.friction_speed))
        holds = True
    simulator = StructureSimulator(
        Robot(name=structure.kind, model=structure), time_step, "rattle",
        start=structure.nodes if start is None else start,
    )  # fmt: skip
    begin = simulator.state.nodes
    lengths = np.linalg.norm(begin[structure.members[:, 0]] - begin[structure.members[:, 1]], axis=1)
    pulls = structure.unilateral & ~structure.fixed[structure.members].all(axis=1)
    goal = np.array(structure.rest_lengths)
    if pretension is not None:
        goal[pulls] = lengths[pulls] - pretension / structure.stiffness[pulls]
        for k in np.flatnonzero(pulls & ~(goal > 0.0)):
            raise TensegrityError(
                f"a pretension of {pretension:g} N stretches {structure.member_names[k]} by "
                f"{pretension / structure.stiffness[k]:.4g} m, more than its length of {lengths[k]:.4g} m at the "
                "start: its rest length would be negative. Choose a smaller pretension, or make it stiffer."
            )
    step = simulator.time_step
    duration = 20.0 * simulator.shortest_period if ramp is None else ramp
    if tolerance is None:
        strongest = structure.stiffness[pulls] * lengths[pulls]
        heaviest = 1e-3 * np.linalg.norm(
            structure.steady_forces(), axis=1
        )  # without tensions, the weights give the scale
        tolerance = 1e-9 * float(max(strongest.max(initial=1e-9), heaviest.max(initial=0.0)))
    simulator.set_rest_lengths(np.where(pulls, lengths, goal))
    pace = np.abs(goal - simulator.state.rest_lengths) / max(duration / step, 1.0)
    pace[pace == 0.0] = 1.0
    state, done, at_rest = np.zeros(3), 0, False
    while not at_rest:
        if done >= maximum_steps:
            raise NoEquilibriumError(
                f"start-up: {state[2]:.3g} N are left after {done} steps, {tolerance:.3g} N are required"
                + ("" if zero_velocities else " (velocities were not set to zero)")
                + ". Give it more damping or more steps, or look for the equilibrium by method 'newton'."
            )
        count = min(STEPS_PER_CALL, maximum_steps - done)
        taken, at_rest = simulator.run_start_up(
            start_up_steps, goal, pace, zero_velocities, holds, tolerance, count, state
        )
        done += taken
        if progress is not None:
            progress(done, float(state[2]))
    seen = simulator.observe()
    tensions = np.array([seen.tensions[name] for name in structure.member_names])
    final = np.array([seen.lengths[name] for name in structure.member_names])
    slack = tuple(structure.member_names[k] for k in np.flatnonzero(pulls & ~(tensions > tolerance)))
    return StartUp(
        simulator.state.nodes, goal, final, tensions, float(state[2]), slack, done, step, int(state[1])
    )  # fmt: skip
