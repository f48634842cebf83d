"""Bounds on the pose error that friction of routed cables causes at the output.

With friction the configurations at rest form a set. Which of them a robot reaches depends on its motion before.

At rest every contact can have any strain ratio from e^-(friction x wrap) to e^(friction x wrap). The bounds of the set
are computed from configurations in which every contact is at one of these two limits. First all contacts slip in one
direction, then all in the other direction. From both, each contact is reversed alone, which gives its effect on the
output. Then, for both ends of every controlled axis, each contact is set to the limit that moves the output towards
this end. The bounds are exact if the sign of the effect of each contact does not depend on the other contacts.
Otherwise a configuration with a contact between its limits can lie some percent outside. Contacts on joints that turn
freely (pulleys) have equal strains on both sides at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError
from ...robots.output_frame import Pose, pose_error
from ..body_frame import BodyFrame
from ..body_poses import BodyPoses
from ..dynamics.equations_of_motion import evaluate
from ..mechanism_model import MechanismModel
from ..route_readings import with_slips
from ..routing.columns import FIRST, LENGTH, REST_NOW, TOUCHES, TRIAL, TURNING_V
from ..workspace import make_workspace
from .equilibrium_solver import MechanismEquilibriumSolver

BEYOND = 0.05
"""Initial strain difference between two successive strands; it exceeds the bound, so that the contact slips back."""
MOST_ROUNDS, SETTLED = 200, 1e-9
"""Largest number of iterations to find a configuration with all contacts at their bounds, and the largest change of a
coordinate [rad or m] in the last iteration."""


class FrictionBand:
    """Bounds on the pose of an output at rest with friction, with the actuators held at their positions.

    Args:
        model: mechanism with elastic routed cables that have friction. held: names of the joints of the actuators.
    """

    def __init__(self, model: MechanismModel, held: Sequence[str]) -> None:
        self._model, self._held = model, tuple(held)
        self._free = replace(model, mechanism=model.mechanism.sliding_freely())
        self._poses, self._work = BodyPoses(model), make_workspace(model.mechanism.flat)
        self._still = np.zeros(model.mechanism.velocity_count)
        flat = model.mechanism.flat
        idle = {
            model.mechanism.velocities_of(joint.name).start
            for joint in model.mechanism.joints
            if joint.name not in self._held and not any(each.stiffness for each in joint.resistance)
        }
        self._contacts = [
            int(cable[FIRST]) + int(e)
            for cable, route in zip(flat.routed_cables, model.mechanism.routes, strict=True)
            for e in (() if route.rigid else route.rubbing)
            if int(route.elements[e, TURNING_V]) not in idle
        ]

    def bounds(self, q: NDArray[np.float64], output: BodyFrame) -> tuple[Pose, NDArray[np.float64]]:
        """Pose of the output without friction, and lower and upper bound (2, 6) [m and rad] of the pose error.

        The error is in world axes. The bounds are computed along the axes that the output controls.

        Args:
            q: (nq,) configuration near the equilibrium, with the positions of the actuators.

        Raises:
            NoEquilibriumError: no equilibrium was found without friction, or none with friction.
        """
        middle = MechanismEquilibriumSolver(self._free.mechanism, self._held).solve(q)
        pose = self._pose(middle.q, output)
        self._look(middle.q)
        touching = [k for k, row in enumerate(self._contacts) if self._state[row, TOUCHES] != 0.0]
        if not touching:
            return pose, np.zeros((2, 6))

        found: dict[bytes, NDArray[np.float64]] = {}

        def off(signs: NDArray[np.float64]) -> NDArray[np.float64]:
            """(6,) pose error with each contact slipping to the side given by its sign; results are cached."""
            if (key := signs.tobytes()) not in found:
                found[key] = pose_error(self._pose(self._at_bounds(middle.q, signs), output), pose)
            return found[key]

        for all_alike in (np.ones(len(self._contacts)), -np.ones(len(self._contacts))):
            moves = np.zeros((all_alike.size, 6))
            for k in touching:
                turned = np.where(np.arange(all_alike.size) == k, -all_alike, all_alike)
                moves[k] = all_alike[k] * (off(all_alike) - off(turned))
            for axis in output.rows:
                for sense in (1.0, -1.0):
                    off(np.where(sense * moves[:, axis] >= 0.0, 1.0, -1.0))
        ends = np.array([np.zeros(6), *found.values()])
        return pose, np.array([ends.min(axis=0), ends.max(axis=0)])

    def _look(self, q: NDArray[np.float64]) -> None:
        evaluate(self._model.mechanism.flat, np.ascontiguousarray(q), self._still, self._work)
        self._state = np.array(self._work.route_state)

    def _pose(self, q: NDArray[np.float64], output: BodyFrame) -> Pose:
        return self._poses.update(q).output(output)[0]

    def _at_bounds(self, q: NDArray[np.float64], signs: NDArray[np.float64]) -> NDArray[np.float64]:
        """(nq,) equilibrium near q in which each contact has slipped back to its bound from beyond it."""
        for _ in range(MOST_ROUNDS):
            self._look(q)
            mechanism = with_slips(self._model.mechanism, self._slip(signs))
            shape = MechanismEquilibriumSolver(mechanism, self._held).solve(q)
            moved, q = float(np.max(np.abs(shape.q - q))), shape.q
            if moved <= SETTLED:
                return q
        raise NoEquilibriumError("no shape was found in which all contacts of the cables slip to one side.")

    def _slip(self, signs: NDArray[np.float64]) -> NDArray[np.float64]:
        """(e,) slip [m] at every element that puts all contacts beyond their bounds, from the state of `_look`."""
        flat, state = self._model.mechanism.flat, self._state
        slip = np.array(state[:, TRIAL])
        touching = [state[row, TOUCHES] != 0.0 for row in self._contacts]
        beyond = {row: sign for row, sign, on in zip(self._contacts, signs, touching, strict=True) if on}
        for cable, route in zip(flat.routed_cables, self._model.mechanism.routes, strict=True):
            begins = (int(cable[FIRST]) + route.holding).tolist()
            while begins:
                end = next((k for k in range(1, len(begins)) if begins[k] not in beyond), len(begins))
                group, begins = begins[:end], begins[end:]
                lengths, rests = state[group, LENGTH], state[group, REST_NOW]
                levels = BEYOND * np.cumsum([0.0, *(beyond[row] for row in group[1:])])
                desired = lengths / (1.0 + levels - levels.min())
                desired *= rests.sum() / desired.sum()
                passed = np.cumsum(rests - desired)
                slip[group[1:]] = state[group[1:], TRIAL] + passed[:-1]
        return slip
