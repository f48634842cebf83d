"""Start-up: from rough nodes and a desired pretension to a state at rest, by the motion itself (003, section 3.6.3).

Every tendon and spring begins at its length of the start, without tension, and its rest length moves to

    d = length at the start - T0 / K

along a ramp, so that no large force appears at once. Velocities are set to zero whenever the kinetic energy peaks
("kinetic energy damping"), which takes out what dampers would take long to. Tensions at the end are not T0: the
structure moves as it tightens. `equilibrium_solver` finds the same rest without the motion, and usually sooner.
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
"""Part of the ground's regularisation speed at which feet creep on a slope meanwhile, where nothing else rests."""


@dataclass(frozen=True, eq=False)
class StartUp:
    """A structure at rest, and what it took.

    Attributes:
        nodes: (n, 3) m. rest_lengths, lengths: (m,) m. tensions: (m,) N, negative in compression.
        residual: N, largest out-of-balance force that is left. slack: tendons and springs without tension, by name.
        steps: of `time_step` s. peaks: of kinetic energy at which velocities were set to zero.
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
    """Up to `count` steps in place; returns (status, steps done, whether it is at rest).

    goal (m,) m: rest lengths to come to, by at most pace (m,) m in each step. zeroes: velocities at peaks of kinetic
    energy. holds: friction that holds a foot counts as a force at rest, too. state (3,): kinetic energy of the last
    step [J], peaks, residual of the last look [N].
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
        structure: with rigid bars; its gravity and ground act.
        pretension: T0 [N] of every tendon and spring; by default the structure's own rest lengths are what is wound to.
        start: (n, 3) m, by default the structure's nodes; bars are brought to their lengths.
        ramp: s in which rest lengths are wound; zero sets them at once; by default twenty shortest periods.
        zero_velocities: set velocities to zero at peaks of kinetic energy; else only its dampers bring it to rest.
        tolerance: N of out-of-balance force; by default 1e-9 of the stiffest tendon's stiffness times its length.
        maximum_steps: then NoEquilibriumError. time_step: s, by default a twentieth of the shortest period.
        progress: called now and then with the steps done and the out-of-balance force [N].

    Raises:
        TensegrityError: a pretension that would need a rest length of zero or below (the member is named), a slope
            that its friction does not hold it on, an option out of its range, or steps that are too long.
            NoEquilibriumError: not at rest in time.
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
        # on level ground feet slide until nothing pushes them
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
                "start: its rest length would be negative. Ask for less, or make it stiffer."
            )
    step = simulator.time_step
    duration = 20.0 * simulator.shortest_period if ramp is None else ramp
    if tolerance is None:
        strongest = structure.stiffness[pulls] * lengths[pulls]
        heaviest = 1e-3 * np.linalg.norm(
            structure.steady_forces(), axis=1
        )  # where nothing pulls, weights say the scale
        tolerance = 1e-9 * float(max(strongest.max(initial=1e-9), heaviest.max(initial=0.0)))
    simulator.set_rest_lengths(np.where(pulls, lengths, goal))
    pace = np.abs(goal - simulator.state.rest_lengths) / max(duration / step, 1.0)
    pace[pace == 0.0] = 1.0
    state, done, at_rest = np.zeros(3), 0, False
    while not at_rest:
        if done >= maximum_steps:
            raise NoEquilibriumError(
                f"start-up: {state[2]:.3g} N are left after {done} steps, {tolerance:.3g} N were asked for"
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
