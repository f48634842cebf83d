"""Pin-jointed networks of nodes and members, in the TR-parameters of document 001 (section 4.1, table 1).

A member k between nodes i and j has the length l = |n_i - n_j|, the rest length d and the tension t = K (l - d). Bars
carry tension and compression; tendons and springs become slack: t = max(0, K (l - d)), or similar (`tension_law`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..contact.collision import Collision
from ..contact.ground import Ground
from ..errors import TensegrityError, unknown_name
from ..numerics.number_array import number_array
from ..numerics.short_repr import ShortRepr
from ..robots.model import Pose, RobotModel
from .imu import Imu
from .node_frame import NodeFrame
from .tension_law import BILATERAL, HARD, extension_law, tension_law

MEMBER_KINDS = ("bar", "tendon", "spring")
AXES = "xyz"


@dataclass(frozen=True, eq=False, repr=False)
class Structure(ShortRepr, RobotModel):
    """Pin-jointed structure of nodes, members and supports; every array is read-only and in SI units.

    Args:
        node_names: n unique names.
        nodes: (n, 3) m, start positions (a rough guess, not an equilibrium).
        member_names: m unique names.
        kinds: m of "bar", "tendon", "spring".
        members: (m, 2) node indices of each member's ends.
        stiffness: (m,) N/m, above zero.
        rest_lengths: (m,) m, above zero.
        masses: (m,) kg; uniform along a bar; for a tendon or spring, half at each end.
        damping: (m,) N s/m along the member, in simulation only.
        fixed: (n,) bool, nodes held at their start positions.
        node_masses: (n,) kg carried by the node itself.
        gravity: (3,) m/s^2 in the world frame.
        ground: contact surface of all free nodes, or None.
        smoothness: smoothness of the soft-plus law of tendons and springs [m] (003, 3.17); zero for the hard law.
        loads: (n, 3) N, constant forces in the world in addition to the weight; zero by default.
        collision: collision model of bars, in explicit simulation only; None for no collisions.
        initial_tensions: (m,) N, at which springs and tendons open, see `tension_law`; zero by default.
        imus: IMUs on bars, see `imu`.
        rollers: (n, 3) bool, axes of the world along which a node that is not fixed is held (a roller, or a node of a
            planar structure); none by default. A node that is held along all three axes is fixed.

    Attributes:
        supports: (n, 3) bool, held coordinates of fixed nodes and rollers.
        unilateral: (m,) bool, members that cannot carry compression. laws: (m,) laws, see `tension_law`.
        free: (f,) free coordinates.

    Raises:
        TensegrityError: shapes disagree, names repeat, a number is not finite or out of range, a member joins a
            node to itself, or two nodes of one member start at the same position.
    """

    kind: ClassVar[str] = "structure"
    noun: ClassVar[str] = "a pin-jointed structure"

    node_names: tuple[str, ...]
    nodes: NDArray[np.float64]
    member_names: tuple[str, ...]
    kinds: tuple[str, ...]
    members: NDArray[np.int64]
    stiffness: NDArray[np.float64]
    rest_lengths: NDArray[np.float64]
    masses: NDArray[np.float64]
    damping: NDArray[np.float64]
    fixed: NDArray[np.bool_]
    node_masses: NDArray[np.float64]
    gravity: NDArray[np.float64]
    ground: Ground | None = None
    smoothness: float = 0.0
    loads: NDArray[np.float64] = None  # type: ignore[assignment]
    collision: Collision | None = None
    initial_tensions: NDArray[np.float64] = None  # type: ignore[assignment]
    imus: tuple[Imu, ...] = ()
    rollers: NDArray[np.bool_] = None  # type: ignore[assignment]
    supports: NDArray[np.bool_] = field(init=False)
    unilateral: NDArray[np.bool_] = field(init=False)
    laws: NDArray[np.float64] = field(init=False)
    free: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        n, m = len(self.node_names), len(self.member_names)
        if self.loads is None:
            object.__setattr__(self, "loads", np.zeros((n, 3)))
        if self.initial_tensions is None:
            object.__setattr__(self, "initial_tensions", np.zeros(m))
        if self.rollers is None:
            object.__setattr__(self, "rollers", np.zeros((n, 3), dtype=np.bool_))
        shapes = {
            "loads": (n, 3), "nodes": (n, 3), "members": (m, 2), "stiffness": (m,), "rest_lengths": (m,),
            "masses": (m,), "damping": (m,), "fixed": (n,), "node_masses": (n,), "gravity": (3,),
            "initial_tensions": (m,), "rollers": (n, 3),
        }  # fmt: skip
        for name, shape in shapes.items():
            kind = {"members": np.int64, "fixed": np.bool_, "rollers": np.bool_}.get(name, np.float64)
            array: NDArray = np.array(getattr(self, name), dtype=kind)
            if array.shape != shape:
                raise TensegrityError(f"{name} has shape {array.shape}, expected {shape}.")
            if not np.all(np.isfinite(array)):
                where = np.argwhere(~np.isfinite(array))[0].tolist()
                raise TensegrityError(f"{name}{where} is not finite; give a number.")
            _set(self, name, array)
        for what, names in (("node", self.node_names), ("member", self.member_names)):
            repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
            if repeated:
                raise TensegrityError(f"{what} names repeat: {', '.join(repeated)}. Give each {what} its own name.")
        self._check_members()
        if not (np.isfinite(self.smoothness) and self.smoothness >= 0.0):
            raise TensegrityError(
                f"smoothness of the tension law is {self.smoothness} m, must be a finite length above zero, or zero "
                "for the hard law."
            )
        _set(self, "unilateral", np.array([kind != "bar" for kind in self.kinds], dtype=np.bool_))
        law = -float(self.smoothness) if self.smoothness > 0.0 else HARD
        laws = np.where(self.unilateral, law, BILATERAL)
        opens = self.initial_tensions > 0.0
        _set(self, "laws", np.where(opens, extension_law(self.initial_tensions, self.stiffness), laws))
        for k in np.flatnonzero(opens):
            if not self.unilateral[k]:
                raise TensegrityError(
                    f"member {self.member_names[k]}: an initial tension is for springs and tendons, this is a bar."
                )
            if self.smoothness > 0.0:
                raise TensegrityError(
                    f"member {self.member_names[k]} has an initial tension, which goes with the hard law of tension "
                    "alone; leave out the smoothness."
                )
        _set(self, "fixed", self.fixed | self.rollers.all(axis=1))
        _set(self, "rollers", self.rollers & ~self.fixed[:, None])
        _set(self, "supports", self.rollers | self.fixed[:, None])
        _set(self, "free", np.flatnonzero(~self.supports).astype(np.int64))
        if self.ground is not None:
            self.check_no_rollers("the ground", "leave out the ground (contact), or free it")

    def _check_members(self) -> None:
        if len(self.kinds) != len(self.member_names):
            raise TensegrityError(f"{len(self.kinds)} kinds for {len(self.member_names)} members.")
        for row, name in enumerate(self.member_names):
            if self.kinds[row] not in MEMBER_KINDS:
                raise TensegrityError(f"member {name}: " + unknown_name("kind", self.kinds[row], MEMBER_KINDS))
            i, j = map(int, self.members[row])
            if not (0 <= i < len(self.node_names) and 0 <= j < len(self.node_names)):
                raise TensegrityError(f"member {name}: node index out of range (0 to {len(self.node_names) - 1}).")
            if i == j:
                raise TensegrityError(f"member {name} joins node {self.node_names[i]} to itself; name two nodes.")
        for name, low in (("stiffness", 0.0), ("rest_lengths", 0.0)):
            for k in np.flatnonzero(getattr(self, name) <= low):
                value = getattr(self, name)[k]
                raise TensegrityError(f"member {self.member_names[k]}: {name} is {value:g}, must be above zero.")
        for name, names in (
            ("masses", self.member_names),
            ("damping", self.member_names),
            ("node_masses", self.node_names),
            ("initial_tensions", self.member_names),
        ):
            for k in np.flatnonzero(getattr(self, name) < 0.0):
                raise TensegrityError(f"{names[k]}: {name} is {getattr(self, name)[k]:g}, must not be negative.")

    def check_no_rollers(self, what: str, instead: str) -> None:
        """Raise TensegrityError, with the first node held along some axes only, because `what` does not support it."""
        for i in np.flatnonzero(self.rollers.any(axis=1)):
            raise TensegrityError(
                f"node {self.node_names[i]} is held along {axis_names(self.rollers[i])} only, and {what} takes nodes "
                f"that are free or held whole; fix it whole, or {instead}."
            )

    # -- names ----------------------------------------------------------------------------------------------------

    def node(self, name: str) -> int:
        """Index of the node with the name `name`."""
        try:
            return self.node_names.index(name)
        except ValueError:
            raise TensegrityError(unknown_name("node", name, self.node_names)) from None

    def member(self, name: str) -> int:
        """Index of the member with the name `name`."""
        try:
            return self.member_names.index(name)
        except ValueError:
            raise TensegrityError(unknown_name("member", name, self.member_names)) from None

    # -- interface of all models ----------------------------------------------------------------------------------

    @property
    def tension_names(self) -> tuple[str, ...]:
        """Names of tendons and springs."""
        return tuple(name for name, kind in zip(self.member_names, self.kinds, strict=True) if kind != "bar")

    @property
    def tension_kinds(self) -> Mapping[str, str]:
        """Kinds of tendons and springs by name, except those between two fixed nodes."""
        pulls = self.unilateral & ~self.fixed[self.members].all(axis=1)
        return {self.member_names[k]: self.kinds[k] for k in np.flatnonzero(pulls)}

    @property
    def initial_configuration(self) -> NDArray[np.float64]:
        """Nodes (n, 3) m."""
        return self.nodes

    def output_pose(self, output: NodeFrame, configuration: NDArray[np.float64]) -> Pose:
        """Pose of an output for nodes (n, 3) m."""
        return output.pose(configuration)

    @property
    def takes_no_goals(self) -> str:
        """Reason for a structure that is free on its ground: rest lengths determine its shape, not its position."""
        if self.ground is None or self.fixed.any():
            return ""
        return (
            "stands free on its ground: its rest lengths decide its shape, not where it is. The controller rolling "
            "takes it to positions"
        )

    @property
    def load_names(self) -> tuple[str, ...]:
        """Names of all nodes."""
        return self.node_names

    def tendon_stiffness(self, driven: str) -> float:
        """Stiffness K [N/m] of the member with the name `driven`."""
        return float(self.stiffness[self.member(driven)])

    # -- variants -------------------------------------------------------------------------------------------------

    def with_rest_lengths(self, rest_lengths: Mapping[str, float] | ArrayLike | None) -> Structure:
        """Copy of the structure with other rest lengths: all as (m,) [m], or some by member name."""
        if rest_lengths is None:
            return self
        return replace(self, rest_lengths=self.rest_length_array(rest_lengths))

    def rest_length_array(self, rest_lengths: Mapping[str, float] | ArrayLike | None) -> NDArray[np.float64]:
        """(m,) rest lengths [m]: those of the structure, updated by name or replaced as a whole."""
        lengths = np.array(self.rest_lengths)
        if isinstance(rest_lengths, Mapping):
            for name, value in rest_lengths.items():
                one = number_array(value, f"rest length of {name} in m")
                if one.shape != ():
                    raise TensegrityError(f"rest length of {name} is {value!r:.100}; give one number in m.")
                lengths[self.member(name)] = one
        elif rest_lengths is not None:
            lengths = number_array(rest_lengths, "rest lengths in m")
            if lengths.shape != self.rest_lengths.shape:
                raise TensegrityError(f"rest_lengths has shape {lengths.shape}, expected {self.rest_lengths.shape}.")
        bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0.0)))
        if bad.size:
            row = bad[0]
            raise TensegrityError(
                f"rest length of {self.member_names[row]} is {lengths[row]}, must be a finite length above zero."
            )
        return lengths

    def force_array(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> NDArray[np.float64]:
        """(n, 3) external forces without weight [N]: given by node name, as an array, or None."""
        array = np.zeros((len(self.node_names), 3))
        if isinstance(forces, Mapping):
            for name, value in forces.items():
                vector = number_array(value, f"force on node {name} in N")
                if vector.shape != (3,):
                    raise TensegrityError(f"force on node {name} has shape {vector.shape}, expected (3,).")
                array[self.node(name)] += vector
        elif forces is not None:
            array = number_array(forces, "forces in N")
            if array.shape != (len(self.node_names), 3):
                raise TensegrityError(f"forces has shape {array.shape}, expected ({len(self.node_names)}, 3).")
        if not np.all(np.isfinite(array)):
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise TensegrityError(f"force on node {self.node_names[row]} is not finite; give three numbers in N.")
        return array

    # -- derived --------------------------------------------------------------------------------------------------

    def lumped_masses(self) -> NDArray[np.float64]:
        """(n,) lumped masses [kg]: node mass and half of every member that ends there (001, Algorithm 1, line 4)."""
        masses = np.array(self.node_masses)
        np.add.at(masses, self.members[:, 0], 0.5 * self.masses)
        np.add.at(masses, self.members[:, 1], 0.5 * self.masses)
        return masses

    def weights(self) -> NDArray[np.float64]:
        """(n, 3) weights of the lumped masses [N]."""
        return self.lumped_masses()[:, None] * self.gravity[None, :]

    def mass_matrix(self, *, spread: bool = True) -> NDArray[np.float64]:
        """(n, n) mass matrix [kg]: v' M v / 2 is the kinetic energy of node velocities v, equal in each direction.

        A bar of mass m with the masses a and b at its ends has the block [[m/3 + a, m/6], [m/6, m/3 + b]], which is
        exact for constant length. Without `spread`, its mass is at the ends (003, section 3.4).
        """
        matrix = np.diag(self.lumped_masses())
        if spread:
            for k in np.flatnonzero(~self.unilateral & (self.masses > 0.0)):
                i, j = self.members[k]
                part = self.masses[k] / 6.0
                matrix[[i, j], [i, j]] -= part
                matrix[[i, j], [j, i]] += part
        return matrix

    def tension_slopes(self, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) derivative of the tension of each member by its length [N/m], at lengths (m,) [m]; zero for slack
        ones."""
        slopes = [
            tension_law(law, stiffness, stretch)[1]
            for law, stiffness, stretch in zip(self.laws, self.stiffness, lengths - self.rest_lengths, strict=True)
        ]
        return np.array(slopes, dtype=np.float64)

    def tensions_at(self, lengths: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """(k,) tensions [N] of some members at lengths (k,) [m], with the rest lengths of the structure."""
        of_each = zip(self.laws[rows], self.stiffness[rows], lengths - self.rest_lengths[rows], strict=True)
        return np.array([tension_law(*each)[0] for each in of_each], dtype=np.float64)

    def steady_forces(self) -> NDArray[np.float64]:
        """(n, 3) weights and loads [N]."""
        return self.weights() + self.loads

    def connectivity(self) -> NDArray[np.float64]:
        """C, (m, n): +1 at the first node and -1 at the second node of each member (001, table 1)."""
        matrix = np.zeros((len(self.member_names), len(self.node_names)))
        rows = np.arange(len(self.member_names))
        matrix[rows, self.members[:, 0]] = 1.0
        matrix[rows, self.members[:, 1]] = -1.0
        return matrix


def make_structure(
    nodes: Mapping[str, ArrayLike],
    members: Sequence[tuple[str, str, str, str, float, float]],
    *,
    fixed: Sequence[str] = (),
    rollers: Mapping[str, str] | None = None,
    masses: Mapping[str, float] | None = None,
    node_masses: Mapping[str, float] | None = None,
    damping: Mapping[str, float] | None = None,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    ground: Ground | None = None,
    smoothness: float = 0.0,
) -> Structure:
    """Structure from nodes and members given by name, for example in a notebook.

    Args:
        nodes: start position (3,) m by node name.
        members: rows (name, kind, first node, second node, stiffness N/m, rest length m).
        fixed: names of the fixed nodes. rollers: held axes such as "xz", by names of other nodes.
        masses, damping: kg and N s/m by member name, zero where not named.
        node_masses: kg by node name, zero where not named.
        gravity: (3,) m/s^2. ground, smoothness: see `Structure`.

    Raises:
        TensegrityError: a node or member is unknown, an axis is not x, y or z, or an error of `Structure`.
    """
    names = tuple(nodes)
    member_names = tuple(row[0] for row in members)

    def index(name: str) -> int:
        if name not in names:
            raise TensegrityError(unknown_name("node", name, names))
        return names.index(name)

    def by_name(values: Mapping[str, float] | None, names: tuple[str, ...], what: str) -> list[float]:
        for name in values or {}:
            if name not in names:
                raise TensegrityError(unknown_name(what, name, names))
        return [float((values or {}).get(name, 0.0)) for name in names]

    held = {index(name) for name in fixed}
    axes = np.zeros((len(names), 3), dtype=np.bool_)
    for name, letters in (rollers or {}).items():
        if not set(letters) <= set(AXES):
            raise TensegrityError(f"roller {name}: {letters!r} is no list of axes; give some of {''.join(AXES)}.")
        axes[index(name)] = [axis in letters for axis in AXES]
    return Structure(
        node_names=names,
        nodes=np.array([np.asarray(nodes[name], dtype=np.float64) for name in names]).reshape(len(names), 3),
        member_names=member_names,
        kinds=tuple(row[1] for row in members),
        members=np.array([[index(row[2]), index(row[3])] for row in members], dtype=np.int64).reshape(len(members), 2),
        stiffness=np.array([row[4] for row in members], dtype=np.float64),
        rest_lengths=np.array([row[5] for row in members], dtype=np.float64),
        masses=np.array(by_name(masses, member_names, "member")),
        damping=np.array(by_name(damping, member_names, "member")),
        fixed=np.array([i in held for i in range(len(names))], dtype=np.bool_),
        node_masses=np.array(by_name(node_masses, names, "node")),
        gravity=np.array(gravity, dtype=np.float64),
        ground=ground,
        smoothness=smoothness,
        rollers=axes,
    )


def axis_names(held: NDArray[np.bool_]) -> str:
    """Axes of a row (3,) of `Structure.supports` as text."""
    return " and ".join(axis for axis, is_held in zip(AXES, held, strict=True) if is_held)


def _set(structure: Structure, name: str, array: NDArray) -> None:
    array.setflags(write=False)
    object.__setattr__(structure, name, array)
