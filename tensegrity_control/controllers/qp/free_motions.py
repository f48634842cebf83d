"""Free motions, which the output leaves undetermined: their stability under the program of `qp`, and a posture for
them.

The program damps free motions, w'' = -k w', and the desired tensions act on them (`motion_program`). If these tensions
have no stable equilibrium, free motions diverge, slowly because of the damping, until cables reach their floors.
Examples are struts on ball joints whose cables turn them about their own axis, and arms with more links than the output
needs. With z along the free motions, w' = Z z', the output held and tensions free, the rate of divergence is

    z'' = S z,   r = max Re(-k / 2 + sqrt(k^2 / 4 + eig S))

Above `DRIFT` the free motions are held as well, at the configuration of the start as far as the output allows it, or at
given equilibria (`aim`). On request they are held from the start if that stabilises them. This is for routed cables,
whose forces on light links change after a short distance, and for joints that motors drive, since otherwise the
lightest links would do all the motion and fold. The law that holds them is

    w'' = -Z (k z' + s^2 z),   z = U^+ (q - q_0),   z' = U^+ v

with s half the bandwidth of the output's loop, k at least 2 s, and U the rows of Z without the motions of cables and of
what winds them, since pulleys have to turn when the output moves. If this law does not help, no actuator holds the free
motion, and an error names it. The same holds if free motions diverge between two commands, by the law of `held_growth`
for constant efforts, unless actuators with position control (impedances) prevent that themselves.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import difference
from tensegrity_dynamics.numerics.types import Array

from ...optimization.motion_program import MotionProgram

DRIFT = 0.01
"""1/s, rate of divergence above which free motions are held."""
LOOSE = 0.5
"""1/s, rate of divergence under the holding law above which a robot is refused."""
STEP = 1e-5
"""rad or m of the largest coordinate, step of finite differences."""
DEPENDENT = 1e-9
"""Fraction of the largest singular value above which rows count as independent."""
NAMED = 0.3
"""Fraction of the largest coordinate of a motion above which messages name a coordinate."""


class FreeMotions:
    """Stability and posture of the free motions; see the module.

    Args:
        program: program of the robot; `begin` leaves its equations at another state.

    Attributes:
        driven: whether motors drive joints directly and not by cables.
        stiffness: s^2 [1/s^2] of the holding law; 0 if free motions are only damped.
        damping: k [1/s].
        rate: r [1/s] at the last `begin`, including the holding law.
        between: r [1/s] between two commands; 0 if actuators with position control hold the robot.
    """

    def __init__(self, program: MotionProgram) -> None:
        equations = program.equations
        self._program, self._mechanism = program, equations.mechanism
        self._still, self._start = np.zeros(self._mechanism.velocity_count), np.zeros(0)
        other = np.ones(self._mechanism.velocity_count, dtype=bool)
        model = equations.model
        turned = [joint for entry in model.entries for joint in entry.joints]
        turned += [point.joint for route in model.routes for point in route.route if point.joint]
        for joint in turned:
            other[self._mechanism.velocities_of(joint)] = False
        self._others = np.flatnonzero(other)
        self.driven = bool(np.any(other[equations.parts.drive]))
        self.stiffness, self.damping, self.rate, self.between = 0.0, 0.0, 0.0, 0.0

    def begin(
        self,
        q: Array,
        damping: float,
        bandwidth: float,
        held: Array | None = None,
        allowed: float = 0.0,
        always: bool = False,
    ) -> None:
        """Analyse the free motions at q (nq,), the origin of the posture, with the present desired tensions of the
        program.

        Args:
            damping: k [1/s] that was requested.
            bandwidth: w [1/s] of the output's loop.
            held: (a,) efforts that stay constant between commands; None if actuators with position control hold the
                robot.
            allowed: 1/s, allowed rate of divergence between commands.
            always: whether free motions are held even if they are stable here, provided that holding does not
                destabilise them.

        Raises:
            TensegrityError: a free motion diverges and no actuator holds it, or it diverges too fast for this
                controller.
        """
        self._start, self.stiffness, self.damping, self.between = np.array(q), 0.0, damping, 0.0
        loose, motion = self.fastest()
        self.rate, falls = loose, loose > DRIFT
        if not (falls or (always and motion.any())):
            return
        self.stiffness, self.damping = (0.5 * bandwidth) ** 2, max(damping, bandwidth)
        self.rate, motion = self.fastest()
        if not falls:
            if self.rate > DRIFT:  # too few efforts to hold motions that are stable by themselves
                self.rate, self.stiffness, self.damping = loose, 0.0, damping
            return
        what = (
            f"{self._program.equations.robot.name} has a free motion (one that its output does not control) that "
            "diverges"
        )
        if self.rate > LOOSE:
            raise TensegrityError(
                f"{what} with {self.rate:.3g} 1/s and that no actuator holds: {self._names(motion)}. Add an actuator "
                "for it, control it as part of the output, or stiffen it by a spring or by a different prestress."
            )
        if held is None:
            return
        self.between, motion = self.fastest(held)
        if self.between > allowed:
            raise TensegrityError(
                f"{what} with {self.between:.3g} 1/s between two commands, more than the {allowed:.3g} 1/s that this "
                f"controller can hold: {self._names(motion)}. Shorten the control period by a factor of "
                f"{self.between / allowed:.2g} or more, reduce the prestress, or stiffen the motion by a spring."
            )

    def aim(self, q: Array) -> None:
        """Set the posture to q (nq,)."""
        self._start = q

    def _names(self, motion: Array) -> str:
        """Names of the coordinates with the largest velocities in (nv,)."""
        size = np.abs(motion)
        names = zip(self._mechanism.coordinate_names(), size, strict=True)
        return ", ".join(each for each, part in names if part > NAMED * np.max(size))

    def drag(self, q: Array, v: Array) -> Array | None:
        """(n,) k z' + s^2 z in all coordinates at the last `update`; None if free motions are only damped."""
        if not self.stiffness > 0.0:
            return None
        free, basis = self._directions()
        off = self.damping * v[self._others]
        off += self.stiffness * difference(self._mechanism, self._start, q)[self._others]
        return np.asarray(free @ np.linalg.lstsq(basis[self._others] @ free, off, rcond=DEPENDENT)[0])

    def _directions(self) -> tuple[Array, Array]:
        """Z (n, m), orthonormal, and G (nv, n) at the last `update`."""
        equations = self._program.equations
        return equations.free_directions(), equations.reduction.basis[:, : equations.count]

    def fastest(self, held: Array | None = None) -> tuple[float, Array]:
        """r and the velocities (nv,) of that motion; without damping if `held` gives constant efforts (a,)."""
        equations = self._program.equations
        equations.update(self._start, self._still)
        free, basis = (np.array(each) for each in self._directions())
        index = np.array(equations.reduction.independent[: equations.count])
        if not free.shape[1]:
            return 0.0, self._still
        slopes = np.empty((free.shape[1],) * 2)
        for k, direction in enumerate((basis @ free).T):
            step = STEP / float(np.max(np.abs(direction)))
            there, back = (self._accelerations(direction, sign * step, held)[index] for sign in (1.0, -1.0))
            slopes[:, k] = np.linalg.lstsq(free, (there - back) / (2.0 * step), rcond=None)[0]
        values, motions = np.linalg.eig(slopes)
        half = 0.5 * self.damping if held is None else 0.0
        rates = (np.sqrt(half * half + values.astype(complex)) - half).real
        fastest = int(np.argmax(rates))
        return float(rates[fastest]), np.asarray((basis @ free @ motions[:, fastest]).real)

    def _accelerations(self, direction: Array, step: float, held: Array | None) -> Array:
        """(nv,) accelerations at rest, a step [s] along a velocity (nv,) from the start; with the output held and
        without bounds, or under efforts (a,)."""
        equations = self._program.equations
        q = equations.moved(self._start, direction, step)
        arrays = equations.update(q, self._still)
        if held is None:
            drag = self.drag(q, self._still)
            rates = self._program.unbounded(np.zeros(equations.count) if drag is None else drag)
        else:
            rates = arrays.rate_0 + arrays.rate_1 @ held
        return np.asarray(equations.reduction.basis[:, : equations.count] @ rates + equations.reduction.offset)
