"""Outputs carried by springs: control of the output at rest with the actuators at their present positions.

With fewer actuators than degrees of freedom, only springs, gravity or prestress hold some motions: a finger bent by one
tendon, a load on a spring behind its motor. The immediate effect of an effort on the output, y'' = b_0 + B u, does not
show where the effort leads: B may be zero or have the opposite sign, since inertia and springs distribute a motion
differently among the joints. Actuators can only hold an equilibrium. So the controlled quantity is the output at the
equilibrium,

    yh = y(q) + J N z,   S z = -z_0'',   yh' = G q_a',   G = J (Q - N S^-1 T) Q_a^+

with N the motions that keep all actuators q_a and the lengths of tight cables, z_0'' their accelerations from rest
here, S = d z''/dz (one Newton step to the equilibrium), Q the motions of the actuators, Q_a their effect on q_a, and T
= d z''/d Q. yh depends on the actuators alone, so that its control destabilises no motion that is stable with the
actuators held. At rest yh = y. The error of the model is learned slowly compared with the motions held by springs, d' =
w_d (y - yh - d), and added to yh. If no motion in N moves the output, yh = y always, and none of this is used.
"""

from __future__ import annotations

import math

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

STEP = 1e-6
"""rad or m of the largest coordinate, step of finite differences."""
DEPENDENT = 1e-9
"""Fraction of the largest singular value above which motions count as independent."""
MOVED = 1e-6
"""Fraction of a motion of the output above which a free motion counts as moving the output."""
FURTHEST = 0.2
"""rad or m, largest step to the equilibrium; for larger steps the derivatives are not valid."""
COLUMNS = 6
"""Average number of columns of the derivatives that are recomputed per period."""
SLOW_PART = 0.25
"""Bandwidth of the learning as a fraction of the slowest decay of the free motions; an integral remains stable with a
factor of four."""
HELD = 0.1
"""1/s^2, ratio of stiffness to mass above which a free motion counts as held."""
NAMED = 0.3
"""Fraction of the largest coordinate of a motion above which messages name a coordinate."""


class SettledOutput:
    """Output at rest; see the module.

    Args:
        equations: equations of the robot; the methods leave them at another state.

    Attributes:
        needed: whether free motions move the output, at the last `begin`.
        frequency: rad/s of the slowest of these motions.
        decay: 1/s of the slowest decay.
        growth: p [1/s] of `held_growth` over all motions, under constant efforts.
        effort: (a,) N m or N that hold the actuators, at the last `begin`.
        distance: smallest singular value of G with scaled rows, relative to the start.
        gain: (k, a) G.
        ahead: (k,) yh - y at the last `look`.
        bias: (k,) d.
    """

    def __init__(self, equations: TightCables) -> None:
        self._equations = equations
        outputs, inputs = equations.arrays.output_1.shape
        self._still = np.zeros(equations.mechanism.velocity_count)
        self.needed, self._looks = False, 0
        self.frequency = self.decay = np.inf
        self.growth, self.distance, self._start = 0.0, 1.0, 1.0
        self.gain, self.ahead, self.bias = np.zeros((outputs, inputs)), np.zeros(outputs), np.zeros(outputs)
        self.effort, self._rows = np.zeros(inputs), np.ones(outputs)

    def begin(self, q: Array, tension: Array) -> None:
        """Check whether springs carry the output at q (nq,), with tensions (c,) N of the cables.

        Raises:
            TensegrityError: nothing holds a free motion that moves the output.
        """
        equations = self._equations
        self.needed, self.distance, self._looks = False, 1.0, 0
        equations.update(q, self._still)
        self._split()
        if not self._moves_output(self._free_output):
            return
        self.effort = self._near(tension)
        self._differentiate(q)
        if not self._moves_output(self._acted_on(q)):
            return
        self._refuse_loose(q)
        self.needed = True
        self._solve(q)
        size = np.linalg.norm(self.gain, axis=1)
        self._rows, self._start = 1.0 / np.where(size > 0.0, size, 1.0), 1.0
        self._start = self._ratio() or 1.0
        self.bias = -self.ahead.copy()
        self.growth = self._growth(q)
        equations.update(q, self._still)

    def look(self, q: Array, effort: Array) -> None:
        """Compute `ahead` and `gain` at q (nq,) under the present efforts (a,); leaves the equations at another
        state."""
        self.effort = effort
        self._looks += 1
        if self._looks * COLUMNS >= self.free_directions.shape[1] + self._driven.shape[1]:
            self._looks = 0
            self._equations.update(q, self._still)
            self._split()
            self._differentiate(q)
        self._solve(q)
        self.distance = self._ratio() / self._start

    def write(self, force: Array | None = None) -> None:
        """Replace the rows of y by those of yh at the state of the last `equations.update`, and add the effect G' f of
        a force f (k,) along yh to the accelerations without efforts."""
        arrays = self._equations.arrays
        if force is not None:
            effort = self.gain.T @ force
            arrays.joint_0[:] += arrays.joint_1 @ effort
            arrays.rate_0[:] += arrays.rate_1 @ effort
            arrays.tension_0[:] += arrays.tension_1 @ effort
        arrays.output_0[:], arrays.output_1[:] = self.gain @ arrays.joint_0, self.gain @ arrays.joint_1
        arrays.jacobian[:] = self.gain @ arrays.inputs
        arrays.mobility[:] = arrays.output_1 @ self.gain.T

    def rate(self, v: Array) -> Array:
        """(k,) yh' at velocity v (nv,)."""
        return np.asarray(self.gain @ v[self._equations.parts.drive])

    def moves(self, rate: Array) -> Array:
        """(nv,) velocities at which yh moves at a rate (k,) by the smallest rates of the actuators."""
        return np.asarray(self._motions @ np.linalg.lstsq(self.gain, rate, rcond=DEPENDENT)[0])

    def learn(self, rate: float, elapsed: float) -> None:
        """Update d towards y - yh for `elapsed` s at a rate [1/s], limited by the decay of the free motions."""
        share = -math.expm1(-min(rate, SLOW_PART * self.decay) * elapsed)
        self.bias -= share * (self.ahead + self.bias)

    def lost(self, margin: float, before: float) -> str:
        """Why the output cannot move on, if its distance is below `margin` and decreased from `before`; else ""."""
        if self.distance >= margin or self.distance >= before:
            return ""
        return (
            f"the actuators hardly move the equilibrium of the output any more (distance from the singularity "
            f"{self.distance:.3g} relative to the start, smallest allowed {margin:.3g})"
        )

    # -- inside -----------------------------------------------------------------------------------------------------

    def _split(self) -> None:
        """Compute motions N (nv, m) and Q (nv, r), the effect of Q on the actuators, and J of both, at the last
        `update`."""
        equations, arrays = self._equations, self._equations.arrays
        basis = np.array(equations.reduction.basis[:, : equations.count])
        kept = _kernel(arrays.stretch)
        driven = arrays.inputs @ kept
        left, size, right = np.linalg.svd(driven)
        rank = int(np.sum(size > DEPENDENT * np.max(size, initial=0.0)))
        free, moving = kept @ right[rank:].T, kept @ (right[:rank].T / size[:rank])
        self._actuated = left[:, :rank]  # effect of Q on the actuators
        self.free_directions, self._driven = basis @ free, basis @ moving
        self._free_output, self._driven_output = arrays.jacobian @ free, arrays.jacobian @ moving

    def _moves_output(self, free_output: Array) -> bool:
        if not free_output.shape[1]:
            return False
        size = np.linalg.norm(self._equations.arrays.jacobian, axis=1)
        return bool(np.any(np.linalg.norm(free_output, axis=1) > MOVED * np.where(size > 0.0, size, np.inf)))

    def _acted_on(self, q: Array) -> Array:
        """(k, m) J N at q (nq,) without motions that neither springs, weight nor efforts accelerate, such as the spin
        of a strut about its own axis: they settle nowhere, and actuators move the output as if they were not there."""
        equations = self._equations
        equations.update(q, self._still)
        pushed = equations.reduction.basis[:, : equations.count] @ equations.arrays.rate_1
        efforts = np.linalg.lstsq(self.free_directions, pushed, rcond=None)[0]
        efforts[np.abs(efforts) < MOVED * np.max(np.abs(pushed))] = 0.0
        springs = np.where(np.abs(self._stiffness) > HELD, self._stiffness, 0.0)
        idle = _kernel(np.vstack((springs, efforts.T)))
        return np.asarray(self._free_output - self._free_output @ idle @ idle.T)

    def _near(self, tension: Array) -> Array:
        """(a,) efforts that hold the actuators with tensions near (c,) N, at the last `update`."""
        arrays = self._equations.arrays
        if not tension.size:
            return self._holding(np.zeros(self.effort.size))
        return self._holding(np.linalg.lstsq(arrays.tension_1, tension - arrays.tension_0, rcond=1e-6)[0])

    def _holding(self, effort: Array) -> Array:
        """(a,) efforts nearest to the given ones under which no actuator accelerates, at the last `update`."""
        arrays = self._equations.arrays
        short = arrays.joint_0 + arrays.joint_1 @ effort
        return np.asarray(effort - np.linalg.lstsq(arrays.joint_1, short, rcond=DEPENDENT)[0])

    def _at_rest(self, q: Array, effort: Array | None = None) -> Array:
        """(nv,) accelerations from rest at q (nq,) with the actuators held, or under efforts (a,)."""
        equations = self._equations
        arrays = equations.update(q, self._still)
        rates = arrays.rate_0 + arrays.rate_1 @ (self._holding(self.effort) if effort is None else effort)
        return np.asarray(equations.reduction.basis[:, : equations.count] @ rates + equations.reduction.offset)

    def _along(self, directions: Array, q: Array, onto: Array, effort: Array | None = None) -> Array:
        """(p, d) derivatives of the accelerations along motions `onto` (nv, p), by q along directions (nv, d)."""
        slopes = np.empty((onto.shape[1], directions.shape[1]))
        for k, direction in enumerate(directions.T):
            step = STEP / max(float(np.max(np.abs(direction))), 1e-12)
            there, back = (
                self._at_rest(self._equations.moved(q, direction, sign * step), effort) for sign in (1.0, -1.0)
            )
            slopes[:, k] = np.linalg.lstsq(onto, (there - back) / (2.0 * step), rcond=None)[0]
        return slopes

    def _differentiate(self, q: Array) -> None:
        """Compute S and G at q (nq,)."""
        slopes = self._along(np.hstack((self.free_directions, self._driven)), q, self.free_directions)
        count = self.free_directions.shape[1]
        self._stiffness = slopes[:, :count]
        self._inverse = np.linalg.pinv(self._stiffness, rcond=DEPENDENT)
        settled = self._driven_output - self._free_output @ (self._inverse @ slopes[:, count:])
        self.gain = settled @ self._actuated.T
        self._motions = (self._driven - self.free_directions @ (self._inverse @ slopes[:, count:])) @ self._actuated.T

    def _solve(self, q: Array) -> None:
        """Compute one Newton step to the equilibrium from q (nq,)."""
        pull = np.linalg.lstsq(self.free_directions, self._at_rest(q), rcond=None)[0]
        step = -(self._inverse @ pull)
        largest = float(np.max(np.abs(self.free_directions @ step), initial=0.0))
        self.ahead = self._free_output @ step * (min(1.0, FURTHEST / largest) if largest > 0.0 else 1.0)

    def _refuse_loose(self, q: Array) -> None:
        """Raise TensegrityError if nothing holds a free motion that moves the output; compute decay and frequency."""
        equations, count = self._equations, self.free_directions.shape[1]
        damping = np.empty((count, count))
        for k, direction in enumerate(self.free_directions.T):
            step = STEP / float(np.max(np.abs(direction)))
            rates = []
            for sign in (1.0, -1.0):
                arrays = equations.update(q, sign * step * direction)
                full = arrays.rate_0 + arrays.rate_1 @ self._holding(self.effort)
                basis = equations.reduction.basis[:, : equations.count]
                rates.append(basis @ full + equations.reduction.offset)
            damping[:, k] = np.linalg.lstsq(self.free_directions, (rates[0] - rates[1]) / (2.0 * step), rcond=None)[0]
        values, motions = np.linalg.eig(self._stiffness)
        moves = np.linalg.norm(self._free_output @ motions, axis=0) > MOVED * np.linalg.norm(self._free_output)
        loose = [k for k in range(count) if moves[k] and not -values[k].real > HELD]
        if loose:
            motion = np.abs((self.free_directions @ motions[:, loose[0]]).real)
            names = zip(equations.mechanism.coordinate_names(), motion.tolist(), strict=True)
            named = ", ".join(name for name, part in names if part > NAMED * np.max(motion))
            raise TensegrityError(
                f"the output of {equations.robot.name} moves with {named}, which neither an actuator nor a spring "
                "holds. Add an actuator or a spring there, or stiffen it by a different prestress."
            )
        state = np.block([[np.zeros((count, count)), np.eye(count)], [self._stiffness, damping]])
        self.decay = max(float(-np.max(np.linalg.eigvals(state).real)), 0.0)
        self.frequency = float(np.sqrt(np.min(-values[moves].real)))

    def _growth(self, q: Array) -> float:
        """max Re sqrt of the eigenvalues of the derivatives of all motions, under constant efforts."""
        motions = np.hstack((self.free_directions, self._driven))
        slopes = self._along(motions, q, motions, self.effort)
        return float(np.max(np.sqrt(np.linalg.eigvals(slopes).astype(complex)).real))

    def _ratio(self) -> float:
        values = np.linalg.svd(self._rows[:, None] * self.gain, compute_uv=False)
        return float(values[-1]) if self.gain.shape[1] >= self.gain.shape[0] else 0.0


def _kernel(rows: Array) -> Array:
    """(n, m) orthonormal basis of the null space of rows (r, n)."""
    if not rows.shape[0]:
        return np.eye(rows.shape[1])
    size = np.linalg.norm(rows, axis=1)
    _, values, right = np.linalg.svd(rows / np.where(size > 0.0, size, 1.0)[:, None])
    return np.asarray(right[int(np.sum(values > DEPENDENT)) :].T)
