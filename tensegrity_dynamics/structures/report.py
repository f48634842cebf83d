"""Reports of a structure for commands: parts, equilibrium and prestress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, UnreachableGoalError
from ..linear_models.modes import Mode, ModeShapes, mode_report
from ..linear_models.output_stiffness import stiffness_report
from ..robots.formatting import listing, millimetres, span, turned
from ..robots.quantities import read_payloads, read_quantity, read_vector, split_item
from ..robots.report import (
    KinematicsOptions,
    Report,
    RobotReport,
    Section,
    beyond_limits,
    closing_rows,
    drive_notes,
    facts,
    free_axes,
    provenance_figures,
    provenance_section,
)
from ..robots.robot import Robot
from .analysis.modes import modes_at_rest
from .analysis.multiple_equilibria import find_equilibria
from .analysis.output_stiffness import output_stiffness
from .analysis.prestress import analyze_prestress
from .analysis.support import find_support, tipping_slopes
from .crossings import describe_crossings
from .dynamics.rod_masses import ROD_MASSES, split_masses
from .form_finding.equilibrium import StructureEquilibrium
from .form_finding.equilibrium_solver import StructureEquilibriumSolver
from .form_finding.forward_kinematics import forward_kinematics
from .form_finding.stability import no_force
from .structure import Structure, axis_names

MOTIONS = ("along x", "along y", "along z", "turning about x", "turning about y", "turning about z")
RIGID_NOTE = "Simulation and ROS nodes take bars as rigid: --rigid-bars shows that shape."


class StructureReport(RobotReport):
    """Reports of a robot whose model is a structure."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.structure = robot.model_as(Structure)

    def check(self) -> Report:
        """Report of parts, actuators, equilibrium with elastic and with rigid bars, and prestress."""
        robot, has_bars = self.robot, "bar" in self.structure.kinds
        shape = forward_kinematics(robot)
        rigid, unfit = self._with_rigid_bars() if has_bars else (shape, [])
        prestress = analyze_prestress(robot, shape)
        shape = _without_rounding(shape)
        warnings = [*_warnings(robot, shape), *unfit]
        slopes = tipping_slopes(rigid, rigid_bars=has_bars) if rigid is not None and self._tips(rigid) else []
        rows = shape_rows(shape, slopes)
        if has_bars and shape.output is not None:
            where = "not determined, see the note" if rigid is None else pose_words(rigid)
            rows.insert(1, ("  with rigid bars", f"{where} (simulation and ROS nodes)"))
        parts = [Section("what it is", ("", ""), _what_it_is(robot))]
        if robot.actuators:
            heads = ("actuator", "rest length mm", "limits mm", "tension N", "limits N", "rate mm/s")
            parts.append(Section("actuators", heads, _actuator_rows(robot, shape), right=(1, 2, 3, 4, 5)))
        parts.append(Section("shape at the lengths of its file", ("", ""), [*rows, *_tension_rows(shape)]))
        parts.append(Section("prestress", ("", ""), prestress.rows()))
        stands = "It stands on its ground by" if structure_stands(shape) else "It stands by"
        why = "its own prestress" if prestress.prestressed else "its loads alone, without a prestress of its own"
        return Report(
            figures={
                "robot": _figures(robot),
                "shape": shape_figures(shape),
                "shape_with_rigid_bars": None if rigid is None else shape_figures(_without_rounding(rigid)),
                **({"tipping_slopes_deg": np.degrees(slopes).tolist()} if slopes else {}),
                "prestress": prestress.figures(),
                "warnings": warnings,
            },
            parts=[*parts, *provenance_section(robot)],
            heading=(robot.name, robot.description),
            notes=warnings,
            verdict=f"{stands} {why}; every tendon is tight and within its limits.",
        )

    def _with_rigid_bars(self) -> tuple[StructureEquilibrium | None, list[str]]:
        """Equilibrium with rigid bars, as in simulation and ROS nodes; or None and warnings for the user."""
        try:
            return forward_kinematics(self.robot, rigid_bars=True), []
        except TensegrityError as error:
            return None, [f"simulation with rigid bars and the ROS nodes do not take it: {error}"]

    def modes(self) -> Report:
        """Report of the modes at rest with fixed rest lengths; bars are rigid, as in simulation."""
        robot, has_bars = self.robot, "bar" in self.structure.kinds
        found, shape = self._modes_at_rest()
        ground = self.structure.ground
        notes = []
        if ground is not None and structure_stands(shape):
            notes.append(
                f"friction is regularised below {ground.friction_speed:g} m/s, as in simulation: at rest it damps the "
                "feet strongly, which shows as fast decays, and as slow ones where the feet creep."
            )
        at = "on its ground" if structure_stands(shape) else "at rest"
        at += ", rest lengths held, rigid bars" if has_bars else ", rest lengths held"
        return mode_report(robot.name, robot.description, found, at, notes)

    def mode_shapes(self) -> ModeShapes:
        """Modes of `modes` with their mode shapes; bars keep their length to first order."""
        found, shape = self._modes_at_rest()
        free = self.structure.free

        def moved(step: NDArray[np.float64]) -> NDArray[np.float64]:
            nodes = np.array(shape.nodes)
            nodes.flat[free] += step
            return nodes

        tensions = dict(zip(self.structure.member_names, shape.tensions.tolist(), strict=True))
        return ModeShapes(shape.nodes, found, tensions, moved)

    def _modes_at_rest(self) -> tuple[list[Mode], StructureEquilibrium]:
        robot, has_bars = self.robot, "bar" in self.structure.kinds
        shape = forward_kinematics(robot, rigid_bars=has_bars)
        return modes_at_rest(shape, rigid_bars=has_bars), shape

    def stiffness(self) -> Report:
        """Stiffness of the output at rest, with rigid bars as in simulation."""
        robot, has_bars = self.robot, "bar" in self.structure.kinds
        shape = forward_kinematics(robot, rigid_bars=has_bars)
        found = output_stiffness(robot, shape, rigid_bars=has_bars)
        at = "on its ground" if structure_stands(shape) else "at rest"
        at += ", rest lengths held, rigid bars" if has_bars else ", rest lengths held"
        return stiffness_report(robot.name, robot.description, found, at)

    def _tips(self, shape: StructureEquilibrium) -> bool:
        """Whether it can tip on a slope: it is free, stable, and on a plane."""
        ground = self.structure.ground
        return ground is not None and ground.hills is None and shape.stable and not self.structure.fixed.any()

    def forward_kinematics(self, options: KinematicsOptions) -> Report:
        """Report of the equilibrium for rest lengths and forces, or of all equilibria found from random starts."""
        robot, method = self.robot, options.method
        lengths = read_lengths(options.lengths, robot)
        forces = read_forces(options.forces, robot)
        gravity = self.structure.gravity if options.gravity is None else np.asarray(options.gravity, dtype=np.float64)
        for name, mass in read_payloads(options.payloads, "node", self.structure.node_names):
            forces[name] = forces.get(name, np.zeros(3)) + mass * gravity
        common: dict[str, Any] = {"gravity": options.gravity, "start": options.start, "rigid_bars": options.rigid_bars}
        if options.competing:
            if method != "newton":
                raise TensegrityError("--competing uses newton; leave --method out.")
            unfit = [f"--{name}" for name in ("tolerance", "delta", "epsilon") if name in options.for_structures]
            if unfit:
                raise TensegrityError(f"{', '.join(unfit)}: not with --competing.")
            return self._competing(lengths, forces, options, common)
        if {"starts", "seed"} & set(options.for_structures):
            raise TensegrityError("--starts and --seed are for --competing.")
        tuning = {name: value for name in ("delta", "epsilon") if (value := getattr(options, name)) is not None}
        if tuning and method != "relaxation":
            raise TensegrityError("--delta and --epsilon are for --method relaxation.")
        shape = forward_kinematics(
            robot, lengths, forces, method=method, tolerance=options.tolerance, **common, **tuning
        )
        title = f"shape of {robot.name}, {'rigid' if options.rigid_bars else 'elastic'} bars"
        parts: list[Section | str] = [Section(title, ("", ""), shape_rows(shape)), _members(shape)]
        if not options.rigid_bars and "bar" in self.structure.kinds:
            parts.append(RIGID_NOTE)
        return Report(
            shape_figures(shape), parts, notes=beyond_limits(robot, lengths), shape=(shape.nodes, shape.tensions)
        )

    def _competing(
        self, lengths: dict[str, float], forces: dict[str, Any], options: KinematicsOptions, common: dict[str, Any]
    ) -> Report:
        found = find_equilibria(
            self.robot, lengths or None, forces=forces or None, count=options.starts, seed=options.seed, **common
        )
        rows = [
            (
                f.label,
                f"{f.count}",
                f"{f.shape.energy:.5g}",
                f"{f.shape.softest:.4g}",
                millimetres(f.shape.pose[0], 1) if f.shape.output else "-",
                ", ".join(f.shape.slack) or "none",
            )
            for f in found
        ]
        heads = ("", "starts", "energy J", "softest N/m", "output at", "slack")
        return Report(
            [{"label": f.label, "starts": f.count, **shape_figures(f.shape)} for f in found],
            [
                Section(f"stable equilibria of {self.robot.name}", heads, rows, right=(1, 2, 3)),
                "Members may pass through each other in these shapes; that is not checked.",
            ],
        )

    def inverse_kinematics(self, result: Any) -> Report:
        robot, home, end = self.robot, result.path[0], result.equilibrium
        steps, (tendon, margin) = len(result.path) - 1, result.lowest_margin
        figures = {
            "reached": True,
            "rest_lengths_m": result.rest_lengths,
            "steps": steps,
            "forward_kinematics_solved": result.solves,
            "pose_error": result.pose_error,
            "lowest_margin_N": margin,
            "lowest_margin_of": tendon,
            "shape": shape_figures(end),
        }
        tensions = dict(zip(robot.structure.member_names, end.tensions.tolist(), strict=True))
        rows = [
            (
                each.name,
                f"{1e3 * float(home.rest_lengths[robot.structure.member(each.drives)]):.2f}",
                f"{1e3 * result.rest_lengths[each.name]:.2f}",
                f"{1e3 * each.position[0]:.1f} to {1e3 * each.position[1]:.1f}",
                f"{tensions[each.drives]:.4g}",
                f"{each.minimum_tension:.3g} to {each.effort:.4g}",
            )
            for each in robot.actuators
        ]
        heads = ("actuator", "at rest mm", "at goal mm", "limits mm", "tension N", "limits N")
        path = f"{steps} steps; closest to slack: {tendon}, {margin:.4g} N above its floor"
        parts: list[Section | str] = [
            Section(f"rest lengths of {robot.name}", heads, rows, right=(1, 2, 3, 4, 5)),
            Section("equilibrium at the goal", ("", ""), [*shape_rows(end), ("path", path)]),
        ]
        if words := free_axes(robot, "the lengths"):
            parts.append(f"{words} At rest: {pose_words(home)}")
        return Report(figures, parts)

    def unreachable(self, error: UnreachableGoalError) -> dict[str, Any]:
        figures = super().unreachable(error)
        if error.nearest is not None:
            figures["nearest"] = {"rest_lengths_m": error.rest_lengths, "shape": shape_figures(error.nearest)}
        return figures

    def not_stable(self, called: str) -> str:
        return (
            f"{self.robot.name} is not a prestressed structure at the lengths of its file: its shape is not determined "
            f"by them, so it cannot be driven. `tensegrity check {called}` shows the free motion; longer bars or "
            "shorter tendons give it a prestress."
        )


def structure_stands(shape: StructureEquilibrium) -> bool:
    """Whether the ground supports the structure."""
    return shape.contacts is not None and bool(np.any(shape.contacts))


def shape_figures(shape: StructureEquilibrium) -> dict[str, Any]:
    """Data of an equilibrium for programs."""
    structure = shape.structure
    figures = {
        "method": shape.method,
        "iterations": shape.iterations,
        "residual_N": shape.residual,
        "converged": shape.converged,
        "stable": shape.stable,
        "softest_N_per_m": shape.softest,
        "softest_motion": motion(shape),
        "position_error_m": shape.position_error,
        "slack": list(shape.slack),
        "energy_J": shape.energy,
        "nodes_m": dict(zip(structure.node_names, shape.nodes, strict=True)),
        "rest_lengths_m": dict(zip(structure.member_names, shape.rest_lengths, strict=True)),
        "lengths_m": dict(zip(structure.member_names, shape.lengths, strict=True)),
        "tensions_N": dict(zip(structure.member_names, shape.tensions, strict=True)),
    }
    support = find_support(shape)
    if support is not None:
        figures["support"] = support.figures()
    if shape.output is not None:
        figures["pose"] = {"position_m": shape.pose[0], "quaternion_wxyz": shape.pose[1]}
    return figures


def shape_rows(shape: StructureEquilibrium, slopes: Sequence[float] = ()) -> list[tuple[str, str]]:
    """Rows of a report on an equilibrium; slopes: tipping slopes of the elastic structure [rad]."""
    rows = []
    if shape.output is not None:
        rows.append((f"{shape.output.name} at", pose_words(shape)))
    stands = f"yes, softest {shape.softest:.4g} N/m: {motion(shape)}"
    moves = f"no: it can move without force ({motion(shape)})"
    error = f", so its nodes are right within {shape.position_error:.1g} m" if shape.stable else ""
    support = find_support(shape)
    rows += [] if support is None else support.rows(slopes)
    return [
        *rows,
        ("stable", stands if shape.stable else moves),
        ("slack", ", ".join(shape.slack) or "none"),
        ("residual", f"{shape.residual:.1e} N after {shape.iterations} iterations ({shape.method}){error}"),
    ]


def _members(shape: StructureEquilibrium) -> Section:
    structure = shape.structure
    rows = [
        (name, kind, f"{1e3 * rest:.2f}", f"{1e3 * length:.2f}", f"{tension + 0.0:.4g}")
        for name, kind, rest, length, tension in zip(
            structure.member_names, structure.kinds, shape.rest_lengths.tolist(), shape.lengths.tolist(),
            shape.tensions.tolist(), strict=True,
        )
    ]  # fmt: skip
    heads = ("member", "kind", "rest length mm", "length mm", "tension N")
    return Section("members (compression is negative)", heads, rows, right=(2, 3, 4))


def pose_words(shape: StructureEquilibrium) -> str:
    """Text on the pose of the output of an equilibrium, in mm and, if it has an orientation, in degrees."""
    position, quaternion = shape.pose
    point = millimetres(position)
    return point if shape.output is not None and shape.output.nodes.size == 1 else f"{point}, {turned(quaternion)}"


def motion(shape: StructureEquilibrium) -> str:
    """Text on the softest motion: motion of the output if it moves, else of the node with the largest motion."""
    structure, direction = shape.structure, shape.softest_direction
    mover = structure.node_names[int(np.argmax(np.linalg.norm(direction, axis=1)))]
    if shape.output is None or shape.output.nodes.size < 3:
        return f"node {mover} moves most"
    twist = shape.output.jacobian(shape.nodes) @ direction.ravel()
    spread = shape.output.points - shape.output.points.mean(axis=0)
    twist[3:] *= np.sqrt(np.mean(np.sum(spread**2, axis=1)))
    size = float(np.linalg.norm(twist))
    if size < 0.2:
        return f"{shape.output.name} hardly moves, node {mover} moves most"
    order = np.argsort(-np.abs(twist))
    main = [MOTIONS[k] for k in order if abs(twist[k]) > 0.4 * size]
    return f"{shape.output.name} {' and '.join(main)}"


def read_lengths(items: Sequence[str], robot: Robot) -> dict[str, float]:
    """Lengths [m] by member name from texts such as "draw_1=8.3 in"; names of actuators are also valid.

    Raises:
        TensegrityError: a text does not have this form, a name is unknown, or a length is not positive.
    """
    drives = {actuator.name: actuator.drives for actuator in robot.actuators}
    names = list(dict.fromkeys((*drives, *robot.structure.member_names)))
    result: dict[str, float] = {}
    for item in items:
        name, value = split_item(item, "--length", f"NAME=LENGTH, for example {names[0]}=0.21m", "member", names)
        member = drives.get(name, name)
        if member in result:
            raise TensegrityError(f"--length {item!r}: {name} is given twice.")
        result[member] = read_quantity(value, "length", f"--length {item!r}:")
        if result[member] <= 0.0:
            raise TensegrityError(f"--length {item!r}: a length must be above zero.")
    return result


def read_forces(items: Sequence[str], robot: Robot) -> dict[str, Any]:
    """Forces (3,) [N] by node name from texts such as "top_1=0,0,-5N"; forces on the same node are added.

    Raises:
        TensegrityError: a text does not have this form, or a node is unknown.
    """
    names, result = robot.structure.node_names, dict[str, Any]()
    for item in items:
        name, value = split_item(item, "--force", f"NODE=X,Y,Z, for example {names[-1]}=0,0,-5N", "node", names)
        result[name] = result.get(name, np.zeros(3)) + read_vector(value, "--force", kind="force")
    return result


def _without_rounding(shape: StructureEquilibrium) -> Any:
    """Equilibrium with tensions set to zero that are rounding errors."""
    return replace(shape, tensions=np.where(np.abs(shape.tensions) > no_force(shape.structure), shape.tensions, 0.0))


def _rods(structure: Structure) -> str:
    """Text on possible collisions of rods, with the nodes of the file."""
    assert structure.collision is not None
    said = f"capsules of {structure.collision.radius:.4g} m radius that collide, {structure.collision.stiffness:g} N/m"
    crossed = describe_crossings(structure, structure.nodes)
    return f"{said}; {crossed}" if crossed else said


def _what_it_is(robot: Robot) -> list[tuple[str, str]]:
    structure = robot.structure
    fixed = [name for name, held in zip(structure.node_names, structure.fixed, strict=True) if held]
    kinds = {kind: structure.kinds.count(kind) for kind in ("bar", "tendon", "spring")}
    free = structure.lumped_masses()[~structure.fixed].sum()
    rows = [
        ("nodes", f"{len(structure.node_names)}, fixed: {listing(fixed) or 'none'}{_rollers(structure)}"),
        *([] if structure.ground is None else [("ground", structure.ground.words)]),
        *([] if structure.collision is None else [("rods", _rods(structure))]),
        ("members", ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in kinds.items() if n)),
        ("mass", f"{structure.masses.sum() + structure.node_masses.sum():.4g} kg, of it {free:.4g} kg moves"),
        ("gravity", ", ".join(f"{x:g}" for x in structure.gravity) + " m/s^2" if structure.gravity.any() else "none"),
    ]
    for output in robot.outputs:
        carriers = [structure.node_names[k] for k in output.nodes]
        rows.append(
            ("output", f"{output.name}, carried by {listing(carriers)}, controls {', '.join(output.controlled)}")
        )
    if robot.tour:
        rows.append(("tour", ", ".join(stop.name for stop in robot.tour)))
    if robot.servos:
        servos = robot.servos["servos"]
        models = sorted({servo["model"] for servo in servos})
        rows.append(("servos", f"{len(servos)} {', '.join(models)}, ids {listing([str(s['id']) for s in servos], 16)}"))
    return rows + closing_rows(robot)


def _actuator_rows(robot: Robot, shape: StructureEquilibrium) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for a in robot.actuators:
        k = shape.structure.member(a.drives)
        rows.append(
            (
                a.name if a.name == a.drives else f"{a.name} ({a.drives})",
                f"{1e3 * shape.rest_lengths[k]:.1f}",
                f"{1e3 * a.position[0]:.1f} to {1e3 * a.position[1]:.1f}",
                f"{shape.tensions[k]:.4g}",
                f"{a.minimum_tension:.3g} to {a.effort:.4g}",
                f"{1e3 * a.rate:.4g}",
            )
        )
    return rows


def _tension_rows(shape: StructureEquilibrium) -> list[tuple[str, str]]:
    """Range of the tensions of every kind of member; members between fixed nodes are not included."""
    structure = shape.structure
    free = ~structure.fixed[structure.members].all(axis=1)
    kinds = np.array(structure.kinds)
    rows = []
    for kind in ("tendon", "spring", "bar"):
        tensions = shape.tensions[free & (kinds == kind)]
        if kind != "bar" and tensions.size:
            rows.append((f"tension of {kind}s", span(tensions, "N")))
        elif tensions.size:
            pushed, pulled = tensions[tensions < 0.0], tensions[tensions > 0.0]
            parts = [span(-pushed, "N compression")] if pushed.size else []
            parts += [span(pulled, "N tension")] if pulled.size else []
            rows.append(("bars", " and ".join(parts) or "not loaded"))
    return rows


def _warnings(robot: Robot, shape: StructureEquilibrium) -> list[str]:
    """Warnings for the user before driving the robot."""
    notes = []
    if not shape.stable:
        notes.append(
            "it does not stay as it stands: it tips or folds by itself, so it cannot be driven."
            if structure_stands(shape)
            else "the lengths do not determine the shape: a motion without stiffness remains, so it cannot be driven; "
            "see the verdict under 'prestress'."
        )
    try:
        split_masses(robot.structure, ROD_MASSES[0])
    except TensegrityError as error:
        notes.append(f"it cannot be simulated: {error}")
    notes += _left_shape(shape)
    if shape.slack:
        notes.append(f"slack at the lengths of the file: {listing(shape.slack)}.")
    for a in robot.actuators:
        tension = float(shape.tensions[shape.structure.member(a.drives)])
        if a.drives in shape.slack:
            continue
        if tension < a.minimum_tension:
            notes.append(f"{a.name} carries {tension:.3g} N, below its floor of {a.minimum_tension:.3g} N.")
        if tension > a.effort:
            notes.append(f"{a.name} carries {tension:.4g} N, above its ceiling of {a.effort:.4g} N.")
    return notes + drive_notes(robot)


def _left_shape(shape: StructureEquilibrium) -> list[str]:
    """Warning if the nodes of the file are in balance, as with `form`, but the equilibrium is at other nodes."""
    structure = shape.structure
    moved = np.linalg.norm(shape.nodes - structure.nodes, axis=1)
    worst = int(np.argmax(moved))
    if structure.ground is not None or moved[worst] <= 1e-3 * float(np.ptp(structure.nodes, axis=0).max()):
        return []
    solver = StructureEquilibriumSolver(structure)
    there = solver.assess(structure.nodes, structure.rest_lengths, solver.total_forces(None, None), 0, "written")
    if there.residual > 1e-6 * float(np.abs(there.tensions).max()) or there.stable:
        return []
    return [
        "the nodes of the file are in balance, but the structure does not stay there (softest "
        f"{there.softest:.3g} N/m): the shape shown is another, with {structure.node_names[worst]} "
        f"{millimetres(moved[worst])} away. "
        "Stiffer tendons, another prestress or more tendons may hold it."
    ]


def _rollers(structure: Structure) -> str:
    """Text on nodes held along some axes only, as the end of a sentence."""
    words: dict[str, list[str]] = {}
    for i in np.flatnonzero(structure.rollers.any(axis=1)):
        words.setdefault(axis_names(structure.rollers[i]), []).append(structure.node_names[i])
    return "".join(f"; held along {axes}: {listing(names)}" for axes, names in words.items())


def _figures(robot: Robot) -> dict[str, Any]:
    structure = robot.structure
    return {
        **facts(robot),
        "nodes": len(structure.node_names),
        "fixed_nodes": int(structure.fixed.sum()),
        "held_coordinates": int(structure.supports.sum()),
        "members": {kind: structure.kinds.count(kind) for kind in ("bar", "tendon", "spring")},
        "mass_kg": float(structure.masses.sum() + structure.node_masses.sum()),
        "gravity_m_per_s2": structure.gravity,
        "actuators": [
            {
                "name": a.name,
                "drives": a.drives,
                "position_m": a.position,
                "rate_m_per_s": a.rate,
                "effort_N": a.effort,
                "minimum_tension_N": a.minimum_tension,
            }
            for a in robot.actuators
        ],
        "outputs": [{"name": o.name, "controlled": o.controlled} for o in robot.outputs],
        "tour": [stop.name for stop in robot.tour],
        "servos": robot.servos,
        "provenance": provenance_figures(robot),
    }
