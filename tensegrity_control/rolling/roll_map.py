"""Map of rolls: the result of winding each cable of a structure that stands on a face, computed by simulation.

On level ground a roll depends neither on the position nor on the heading, so that one simulation for each pair of face
and cable is enough. On a slope the heading matters; it is rounded to `HEADING_STEP`. `hill_map` treats height fields.

If the structure has symmetries (`symmetry`), one simulation covers all pairs of face and cable that a symmetry maps
onto each other. Equilibria on a face repeat as well, since every roll starts and ends with the same rest lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Simulation
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver

from ..cancellation import checkpoint
from .gait import DONE, RELEASE, GaitSettings, Roll, RollingBody
from .symmetry import Symmetry, find_symmetries

MODEL_PERIOD = 0.05
"""s, period at which the simulation is sampled and commanded."""
HEADING_STEP = np.radians(15.0)
FINEST = 4
"""Number of cell sizes, see `RollMap.finest`."""
PATH_STEP = 0.1
"""Smallest displacement of a node between two shapes of a stored path, as a fraction of the size of the structure."""


@dataclass(frozen=True, eq=False)
class Stand:
    """Structure at rest on a face: the face (ascending node indices), the heading [rad] and the position (2,) m of the
    output.

    On hills also the nodes (n, 3) m, if the shape at rest there is available.
    """

    feet: tuple[int, ...]
    heading: float
    position: Array
    nodes: Array | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of winding one cable.

    Attributes:
        cable: index of the actuator.
        feet: face on which the structure stands afterwards; the same face as before if it does not tip.
        shift: (2,) m, displacement, in axes turned by the heading before the roll.
        turn: rad, change of the heading.
        duration: s, until the structure rests.
        shortest: m, shortest rest length of the cable during the roll, also if the structure does not tip.
        peak, least: N, largest and smallest tension of the actuated tendons during the roll.
        rests: whether the structure came to rest in time.
        kind: key that is equal for all rolls that a symmetry maps onto each other.
        path: (k, n, 3) m, nodes along the roll, relative to the position before the roll and in axes turned by the
            heading before it; None if the structure does not tip.
        is_guess: on hills: whether the result is that of level ground and the simulation has not confirmed it.
        end: (n, 3) m, nodes at the end; on hills only.
    """

    cable: int
    feet: tuple[int, ...]
    shift: Array
    turn: float
    duration: float
    shortest: float
    peak: float
    least: float
    rests: bool
    kind: tuple[object, ...] = ()
    path: Array | None = None
    is_guess: bool = False
    end: Array | None = None


@dataclass(frozen=True, eq=False)
class _Run:
    """One simulation: nodes (n, 3) m before and after it, and some along it; for the other fields see `Outcome`."""

    before: Array
    after: Array
    duration: float
    shortest: float
    peak: float
    least: float
    rests: bool
    path: tuple[Array, ...] = ()


class RollMap:
    """Rolls of one robot from each face, simulated on demand and cached.

    Args:
        robot: see `RollingBody`.
        settings: settings of the gait.
        rigid_bars: whether the simulation keeps the bars at constant length.
        tipped_by: returns the roll to simulate instead of a roll by one cable. Its arguments are the body, the cable,
            the nodes (n, 3) m before the roll and the nodes after the roll by that cable alone. None: rolls by one
            cable.

    Attributes:
        runs: number of simulations so far.
        symmetries: symmetries of the structure; the first one is the identity.

    Raises:
        TensegrityError: the robot cannot roll, see `RollingBody`.
    """

    def __init__(
        self, robot: Robot, settings: GaitSettings | None = None, *, rigid_bars: bool = True,
        tipped_by: Callable[[RollingBody, int, Array, Array], Roll] | None = None,
    ) -> None:  # fmt: skip
        self._tipped_by = tipped_by
        self.body, self.settings, self.runs = RollingBody(robot), settings or GaitSettings(), 0
        structure = self.body.structure
        assert structure.ground is not None
        ground, gravity = structure.ground, structure.gravity
        self._turns = ground.slope != 0.0 or bool(gravity[:2].any())
        home = structure.nodes
        try:
            home = StructureEquilibriumSolver(structure, rigid_bars=rigid_bars).solve().nodes
        except NoEquilibriumError:
            pass  # the structure does not stay in the pose of the file; its shape is good enough
        self.home = home
        bare = replace(robot, outputs=())  # the pose is not needed
        natural = Simulation(bare, integrator="rattle", rigid_bars=rigid_bars, start=home)
        self._steps = max(1, int(np.ceil(MODEL_PERIOD / natural.time_step - 1e-9)))
        step = MODEL_PERIOD / self._steps
        self._simulation = Simulation(bare, step, integrator="rattle", rigid_bars=rigid_bars, start=home)
        self._lock = Lock()  # planning thread and control share one simulation
        self.symmetries = find_symmetries(self.body, (structure.nodes, home))
        # the mirror plane must contain gravity and the normal of the ground
        across = np.cross(gravity, ground.normal)
        size = float(np.linalg.norm(across))
        if size <= 1e-12 * float(np.linalg.norm(gravity)):
            down = gravity[:2] if gravity[:2].any() else np.array([1.0, 0.0])
            across = np.array([-down[1], down[0], 0.0])
            size = float(np.linalg.norm(across))
        self._mirror = np.eye(3) - 2.0 * np.outer(across, across) / (size * size)
        self._offsets: dict[tuple[int, tuple[int, ...]], float] = {}
        self._likes: dict[tuple[int, ...], list[tuple[tuple[int, ...], float]]] = {}
        self._rests: dict[tuple[object, ...], Array | None] = {}
        self._arrived: dict[tuple[object, ...], Array] = {}
        self._made: dict[tuple[object, ...], _Run] = {}
        self._outcomes: dict[tuple[object, ...], Outcome] = {}
        self._tipping_cables: dict[tuple[int, ...], set[int]] = {}

    def stand(self, nodes: Array) -> Stand:
        """Stand of nodes (n, 3) m at rest."""
        feet = self.body.reader.touching(nodes)
        return Stand(feet, self.body.reader.heading(nodes, feet), self.body.position(nodes))

    def faces(self) -> list[tuple[int, ...]]:
        """All faces of the shape at rest, including faces on which it cannot stand."""
        return self.body.reader.faces(self.home)

    def standing(self, stand: Stand) -> Array | None:
        """(n, 3) m: shape at rest on a face, or None if the structure does not stay on it."""
        by, image = self._images(stand)[0]
        nodes = self._rest(image)
        return None if nodes is None else by.back(nodes, self._mirror)

    def note_rest(self, nodes: Array) -> None:
        """Store nodes (n, 3) m at rest after a roll, for faces on which a structure that is put down does not stay."""
        by, image = self._images(self.stand(nodes))[0]
        self._arrived[self._key(image)] = by.moved(nodes, self._mirror)

    def outcome(self, stand: Stand, cable: int) -> Outcome | None:
        """Result of winding a cable; None if the structure does not stay on that face even before a cable is wound."""
        own = (*self._key(stand), cable)
        if own not in self._outcomes:
            by, image = min(self._images(stand), key=lambda each: (self._key(each[1]), int(each[0].cables[cable])))
            nodes = self._rest(image)
            if nodes is None:
                return None
            key = (*self._key(image), int(by.cables[cable]))
            if key not in self._made:
                self._made[key] = self._rolled(nodes, int(by.cables[cable]))
            found = self._outcomes[own] = self._seen_by(by, self._made[key], cable, key)
            if found.feet != stand.feet:
                for each in self.symmetries:  # the images of the cable tip the images of the face
                    self._tipping_cables.setdefault(each.face(stand.feet), set()).add(int(each.cables[cable]))
        return self._outcomes[own]

    def rolls(self, stand: Stand, thorough: bool = False) -> Iterator[Outcome | None]:
        """The rolls that leave a face, one by one; yields None after each simulation, so that a caller may pause.

        If the heading matters, cables that have tipped this face before are tried first. The others are tried only if
        none of them tips it, or if `thorough`. On level ground all cables are tried, once.
        """
        everything = range(len(self.body.names))
        first = sorted(self._tipping_cables.get(stand.feet, ())) if self._turns and not thorough else []
        for group in (first, [k for k in everything if k not in first]):
            left = False
            for cable in group:
                before = self.runs
                found = self.outcome(stand, cable)
                if self.runs > before:
                    yield None
                if found is None:
                    return
                if found.feet != stand.feet and found.rests and len(found.feet) > 2:
                    left = True
                    yield found
            if left:
                return

    def try_roll(self, stand: Stand, roll: Outcome) -> None:
        """Simulate a roll whose result is a guess; without effect on planes, where no result is a guess."""

    def hindrance(self, stand: Stand) -> str:
        """Text that says how the ground blocks further rolls from a stand; empty on a plane."""
        return ""

    def alike(self, stand: Stand, turns: int) -> Stand:
        """One representative of all stands that symmetries map onto each other on the spot; `turns` cells of heading
        per turn.

        Rolls lead from all these stands to the same positions, by other cables. Mirrored stands are not among them.
        """
        if len(self.symmetries) == 1 or self._turns:
            return stand
        if stand.feet not in self._likes:
            images = [(each.face(stand.feet), k) for k, each in enumerate(self.symmetries) if not each.mirrored]
            first = min(feet for feet, _ in images)
            self._likes[stand.feet] = [(first, self._offset(k, stand.feet)) for feet, k in images if feet == first]
        part = 2.0 * np.pi / turns
        headings = ((feet, _wrapped(stand.heading + offset)) for feet, offset in self._likes[stand.feet])
        feet, heading = min(headings, key=lambda each: round(each[1] / part) % turns)
        return Stand(feet, heading, stand.position)

    @property
    def finest(self) -> int:
        """Number of cell sizes with which stands are distinguished; each size is a quarter of the one before."""
        return FINEST

    @property
    def is_partial(self) -> bool:
        """Whether `rolls` may leave out cables unless it is called with `thorough`."""
        return self._turns

    def learn_failure(self, stand: Stand, cable: int) -> None:
        """Store that the cable does not tip the robot from this stand; the observed result replaces the simulated
        one."""
        failed = Outcome(cable, stand.feet, np.zeros(2), 0.0, 0.0, np.inf, -np.inf, np.inf, True)
        key = (*self._key(stand), cable)
        self._outcomes[key] = failed

    def after(self, stand: Stand, roll: Outcome) -> Stand:
        """Stand at the end of a roll from a stand."""
        cosine, sine = np.cos(stand.heading), np.sin(stand.heading)
        shift = np.array([cosine * roll.shift[0] - sine * roll.shift[1], sine * roll.shift[0] + cosine * roll.shift[1]])
        return Stand(roll.feet, _wrapped(stand.heading + roll.turn), stand.position + shift)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _key(self, stand: Stand) -> tuple[object, ...]:
        key: tuple[object, ...] = (stand.feet,)
        if self._turns:
            key += (round(_wrapped(stand.heading) / HEADING_STEP) % round(2.0 * np.pi / HEADING_STEP),)
        return key

    def _rounded(self, stand: Stand) -> Stand:
        heading = HEADING_STEP * round(stand.heading / HEADING_STEP) if self._turns else 0.0
        return Stand(stand.feet, heading, np.zeros(2))

    def _images(self, stand: Stand) -> list[tuple[Symmetry, Stand]]:
        """The images of a stand under all symmetries; the representative of all of them first."""
        if len(self.symmetries) == 1:
            return [(self.symmetries[0], stand)]
        found = []
        for k, each in enumerate(self.symmetries):
            turn = self._offset(k, stand.feet)
            heading = _wrapped(turn - stand.heading if each.mirrored else turn + stand.heading)
            found.append((each, Stand(each.face(stand.feet), heading, stand.position)))
        return sorted(found, key=lambda each: self._key(each[1]))

    def _offset(self, k: int, feet: tuple[int, ...]) -> float:
        """rad, change of the heading on a face by a symmetry, which may change the first foot, from which the heading
        counts."""
        if (k, feet) not in self._offsets:
            each, put = self.symmetries[k], self.body.reader.put_down(self.home, feet, 0.0, np.zeros(2))
            own = self.body.reader.heading(put, feet)
            new = self.body.reader.heading(each.moved(put, self._mirror), each.face(feet))
            self._offsets[k, feet] = new + own if each.mirrored else new - own
        return self._offsets[k, feet]

    def _seen_by(self, by: Symmetry, run: _Run, cable: int, kind: tuple[object, ...]) -> Outcome:
        """Result for a cable from a run for the cable that is its image under the symmetry `by`."""
        before, after = (self.stand(by.back(nodes, self._mirror)) for nodes in (run.before, run.after))
        cosine, sine = np.cos(before.heading), np.sin(before.heading)
        own = np.array([[cosine, -sine], [sine, cosine]])  # turned by the heading
        path = np.array([by.back(nodes, self._mirror) for nodes in run.path]).reshape(-1, *run.before.shape)
        path[..., :2] = (path[..., :2] - before.position) @ own
        return Outcome(
            cable, after.feet, (after.position - before.position) @ own, _wrapped(after.heading - before.heading),
            run.duration, run.shortest, run.peak, run.least, run.rests, kind, path if len(path) else None,
        )  # fmt: skip

    def _rest(self, image: Stand) -> Array | None:
        """(n, 3) m, shape at rest on a stand that represents all its images under the symmetries."""
        key = self._key(image)
        if key not in self._rests:
            self._rests[key] = self._settled(self._rounded(image))
        nodes = self._rests[key]
        return self._arrived.get(key) if nodes is None else nodes

    def _settled(self, stand: Stand) -> Array | None:
        with self._lock:
            return self._settle(stand)

    def _settle(self, stand: Stand) -> Array | None:
        body = self.body
        nodes = body.reader.put_down(self.home, stand.feet, stand.heading, stand.position)
        self._begin(nodes)
        roll = Roll(body, None, self.settings, 0.0, nodes, body.neutral)
        nodes = self._run(roll)[0][-1]
        return nodes if body.reader.touching(nodes) == stand.feet else None

    def _begin(self, nodes: Array) -> None:
        self._simulation.reset()
        self._simulation.set_state(nodes)

    def _run(self, roll: Roll) -> tuple[list[Array], float, float, float]:
        """Nodes along the run, shortest rest length of its cable, largest and smallest tension during the run."""
        checkpoint()
        self.runs += 1
        body, simulation, names = self.body, self._simulation, self.body.names
        shortest, peak, least, count = np.inf, -np.inf, np.inf, 0
        last, path, far = body.neutral, [simulation.state.nodes], PATH_STEP * body.reader.size
        while roll.phase != DONE:
            nodes = simulation.state.nodes
            if np.abs(nodes - path[-1]).max() > far:
                path.append(nodes)
            positions = roll.command(count * MODEL_PERIOD, nodes)
            if roll.cable is not None:
                shortest = min(shortest, float(positions[roll.cable]))
                if roll.phase == RELEASE and not roll.tipped:
                    break  # it does not tip
            changed = np.flatnonzero(positions != last)
            simulation.command("position", {names[k]: float(positions[k]) for k in changed})
            simulation.advance(self._steps)
            last, count = positions, count + 1
            pulls = simulation.observe().efforts.values()
            peak, least = max(peak, *pulls), min(least, *pulls)
        return [*path, simulation.state.nodes], shortest, peak, least

    def _rolled(self, nodes: Array, cable: int) -> _Run:
        with self._lock:
            return self._roll(nodes, cable)

    def _roll(self, nodes: Array, cable: int) -> _Run:
        found = self._followed(nodes, Roll(self.body, cable, self.settings, 0.0, nodes, self.body.neutral))
        if self._tipped_by is None or not found.rests or found.after is nodes:
            return found
        return self._followed(nodes, self._tipped_by(self.body, cable, nodes, found.after))

    def _followed(self, nodes: Array, roll: Roll) -> _Run:
        self._begin(nodes)
        try:
            path, shortest, peak, least = self._run(roll)
        except TensegrityError:  # the simulation failed: no reliable roll
            return _Run(nodes, nodes, np.inf, np.inf, np.inf, -np.inf, False)
        if not roll.tipped:
            return _Run(nodes, nodes, self._simulation.time, shortest, peak, least, True)
        if not roll.late:
            self.note_rest(path[-1])
        return _Run(nodes, path[-1], self._simulation.time, shortest, peak, least, not roll.late, tuple(path))


def _wrapped(angle: float) -> float:
    """The same direction between -pi and pi."""
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi)
