"""Equilibria of a structure for given rest lengths of its actuated tendons."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.linear_models.modes import Mode
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.analysis.modes import modes_at_rest
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver
from tensegrity_dynamics.structures.form_finding.force_density import equilibrium_matrix, moving_members
from tensegrity_dynamics.structures.structure import Structure

from ..cancellation import checkpoint
from .equilibrium_map import EquilibriumMap, equilibrium_map
from .structure_jacobian import Sensitivity, compliance, inertial_tensions, longest_period, sensitivity


class StructureEquilibriumMap(EquilibriumMap[StructureEquilibrium]):
    """Equilibria of a structure, see `EquilibriumMap`; they contain the output frame of the robot.

    Args:
        robot: robot with actuated tendons.
        rigid_bars: whether bars keep exactly their rest length instead of being elastic.

    Attributes:
        members: (a,) indices of the actuated tendons.

    Raises:
        TensegrityError: the robot has no output.
    """

    path_tolerance = 1e-6

    def __init__(self, robot: Robot, *, rigid_bars: bool = False) -> None:
        super().__init__()
        self.robot, self.rigid_bars = robot, rigid_bars
        self.members = robot.actuated_members()
        self._solved: WeakSet[StructureEquilibrium] = WeakSet()
        self._home: StructureEquilibrium | None = None
        self._inertia: WeakKeyDictionary[StructureEquilibrium, Array] = WeakKeyDictionary()

    @property
    def solver(self) -> StructureEquilibriumSolver:
        """Solver of this thread."""

        def make() -> StructureEquilibriumSolver:
            robot = self.robot
            return StructureEquilibriumSolver(robot.structure, rigid_bars=self.rigid_bars, output=robot.output)

        return self._in_this_thread("solver", make)

    @property
    def home(self) -> StructureEquilibrium:  # type: ignore[override]
        if self._home is None:
            self._home = self.start()
        return self._home

    def positions(self, equilibrium: StructureEquilibrium) -> Array:
        return np.asarray(equilibrium.rest_lengths[self.members])

    def rest_lengths(self, positions: Array, others: StructureEquilibrium) -> Array:
        """(m,) m, rest lengths of all members: `positions` (a,) of the actuated ones, the others as in an
        equilibrium."""
        lengths = np.array(others.rest_lengths)
        lengths[self.members] = positions
        return lengths

    def solve_lengths(self, lengths: Array, start: StructureEquilibrium | Array | None = None) -> StructureEquilibrium:
        """Equilibrium for rest lengths (m,) m of all members, stable or not.

        Raises:
            NoEquilibriumError: there is none near the start.
        """
        checkpoint()
        equilibrium = self.solver.solve(lengths, start=start)
        self._solved.add(equilibrium)
        return equilibrium

    def start(self, equilibrium: StructureEquilibrium | None = None) -> StructureEquilibrium:
        """Stable equilibrium of the robot with every actuated tendon tight.

        Raises:
            TensegrityError: there is no actuator or no equilibrium, the equilibrium is not stable, or an actuated
                tendon is slack.
        """
        robot, structure = self.robot, self.robot.structure
        if not robot.actuators:
            raise TensegrityError(f"{robot.name} has no actuators; name its adjustable tendons under 'actuators'.")
        if equilibrium is not None and equilibrium.structure.member_names != structure.member_names:
            raise TensegrityError(f"the start shape is not a shape of {robot.name}: it has other members.")
        if equilibrium is None or equilibrium not in self._solved:
            lengths = structure.rest_lengths if equilibrium is None else equilibrium.rest_lengths
            try:
                equilibrium = self.solve_lengths(np.array(lengths), equilibrium)
            except NoEquilibriumError as error:
                raise TensegrityError(f"{robot.name} has no equilibrium to start from: {error}") from error
        self._check_start(equilibrium)
        return equilibrium

    def _check_start(self, equilibrium: StructureEquilibrium) -> None:
        name, structure = self.robot.name, self.robot.structure
        if not equilibrium.converged:
            raise TensegrityError(
                f"{name} has no equilibrium to start from: forces stay out of balance by {equilibrium.residual:.3g} N."
            )
        if not equilibrium.stable:
            worst = structure.node_names[int(np.argmax(np.abs(equilibrium.softest_direction).max(axis=1)))]
            slack = f" Slack: {', '.join(equilibrium.slack)}." if equilibrium.slack else ""
            raise TensegrityError(
                f"{name} is not stable at its start: the softest stiffness is {equilibrium.softest:.3g} N/m, a motion "
                f"mostly of node {worst}.{slack} Shorten tendons or lengthen bars until every tendon carries tension."
            )
        driven = {structure.member_names[k] for k in self.members}
        slack_driven = [each for each in equilibrium.slack if each in driven]
        if slack_driven:
            raise TensegrityError(
                f"{name}: {', '.join(slack_driven)} slack at the start, so the pose does not answer to them; shorten "
                "them until they carry tension, or take them from the actuators."
            )

    def solve(self, positions: Array, start: StructureEquilibrium) -> StructureEquilibrium:
        """Stable equilibrium for rest lengths (a,) m near another one; members that are tight there must be tight here.

        Raises:
            TensegrityError: there is none.
        """
        try:
            equilibrium = self.solve_lengths(self.rest_lengths(positions, start), start)
        except NoEquilibriumError as error:
            raise TensegrityError(f"a point of the path has no equilibrium: {error}") from error
        structure = start.structure
        movable = ~np.all(structure.fixed[structure.members], axis=1)
        tight = structure.unilateral & movable & (start.tensions > 0.0)
        slack = [structure.member_names[k] for k in np.flatnonzero(tight & (equilibrium.tensions <= 0.0))]
        if not (equilibrium.converged and equilibrium.stable) or slack:
            what = f"{', '.join(slack)} goes slack" if slack else f"softest stiffness {equilibrium.softest:.3g} N/m"
            raise TensegrityError(f"a point of the path is no safe equilibrium: {what}; take a smaller motion.")
        return equilibrium

    def compliance(self, equilibrium: StructureEquilibrium) -> Array | None:
        try:
            return compliance(equilibrium, rigid_bars=self.rigid_bars)
        except TensegrityError:
            return None

    def force_capacity(self, equilibrium: StructureEquilibrium) -> float:
        """N, force on the output in both directions of each controlled position axis that can be carried with the nodes
        fixed.

        Actuated tendons are between minimum tension and effort, bars carry any force, all others keep their tensions. A
        linear program for each direction over A t = w + s J' direction.
        """
        from scipy.optimize import linprog  # here, so that importing the package stays quick

        structure, output = equilibrium.structure, self.robot.output
        rows = [row for row in output.rows.tolist() if row < 3]
        if not rows:
            return float("nan")
        moving = moving_members(structure)
        balance = equilibrium_matrix(structure, equilibrium.nodes)
        low = np.where(structure.unilateral, equilibrium.tensions, -np.inf)
        high = np.where(structure.unilateral, equilibrium.tensions, np.inf)
        for actuator, k in zip(self.robot.actuators, self.members, strict=True):
            low[k], high[k] = actuator.minimum_tension, actuator.effort
        loads = balance @ equilibrium.tensions[moving]  # present loads: weight and ground reactions
        pushes = output.jacobian(equilibrium.nodes)[:3, structure.free]
        unit = max(float(np.abs(equilibrium.tensions).max()), 1e-300)
        bounds = [*zip(low[moving] / unit, high[moving] / unit, strict=True), (0.0, None)]
        cost = np.zeros(moving.size + 1)
        cost[-1] = -1.0
        least = np.inf
        for row in rows:
            for sign in (1.0, -1.0):
                matrix = np.column_stack((balance, -sign * pushes[row]))
                found = linprog(cost, A_eq=matrix, b_eq=loads / unit, bounds=bounds, method="highs")
                least = min(
                    least, unit * float(found.x[-1]) if found.status == 0 else 0.0 if found.status == 2 else np.inf
                )
        return least

    @property
    def reach(self) -> float:
        spread = self.robot.output.points - self.robot.output.points.mean(axis=0)
        return float(np.sqrt(np.mean(np.sum(spread**2, axis=1)))) or 1.0

    def tensions(self, equilibrium: StructureEquilibrium) -> Array:
        return equilibrium.tensions[self._tight]

    def efforts(self, equilibrium: StructureEquilibrium) -> Array:
        return np.asarray(equilibrium.tensions[self.members])

    def tension_dynamics(self, equilibrium: StructureEquilibrium) -> tuple[Array, Array]:
        if equilibrium not in self._inertia:
            slopes = self.sensitivity(equilibrium)
            self._inertia[equilibrium] = inertial_tensions(equilibrium, slopes, rigid_bars=self.rigid_bars)
        stretch = np.zeros((len(equilibrium.tensions), self.members.size))
        stretch[self.members, np.arange(self.members.size)] = -self.robot.structure.stiffness[self.members]
        return self._inertia[equilibrium][self._tight], stretch[self._tight]

    @property
    def tension_floors(self) -> dict[str, float]:
        floors = {each.drives: each.minimum_tension for each in self.robot.actuators}
        names = [self.robot.structure.member_names[k] for k in self._tight]
        return {name: floors.get(name, 0.0) for name in names}

    @property
    def _tight(self) -> NDArray[np.int64]:
        """Indices of the tendons and springs that carry tension at home and can lose it."""
        structure = self.robot.structure
        movable = ~np.all(structure.fixed[structure.members], axis=1)
        return np.flatnonzero(structure.unilateral & movable & (self.home.tensions > 0.0))

    def differentiate(self, equilibrium: StructureEquilibrium) -> Sensitivity:
        return sensitivity(equilibrium, self.members, rigid_bars=self.rigid_bars)

    def modes(self, equilibrium: StructureEquilibrium) -> list[Mode]:
        return modes_at_rest(equilibrium, rigid_bars=self.rigid_bars)

    def _slowest_period(self, equilibrium: StructureEquilibrium) -> float:
        return longest_period(equilibrium, rigid_bars=self.rigid_bars)


@equilibrium_map.register
def _(
    model: Structure, robot: Robot, *, rigid_bars: bool = False, shapes_only: bool = False
) -> StructureEquilibriumMap:
    return StructureEquilibriumMap(robot, rigid_bars=rigid_bars)
