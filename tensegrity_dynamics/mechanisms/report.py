"""Reports of a mechanism for commands: tree and loops, degrees of freedom, equilibrium, cables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import NoEquilibriumError, TensegrityError
from ..estimation_interface import Estimate
from ..linear_models.modes import ModeShapes, mode_report
from ..linear_models.output_stiffness import stiffness_report
from ..robots.actuator import Actuator
from ..robots.formatting import listing, millimetres, span, turned
from ..robots.model import Pose
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
from .contact_readings import contact_forces
from .dynamics.equations_of_motion import equations
from .estimation.quasi_static_estimator import MechanismEstimator
from .loads import Load, Payload
from .mechanism import Mechanism
from .mechanism_model import MechanismModel
from .mode_report import singularity_rows
from .resistance import FRICTION, LAW, SPEED
from .statics.equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from .statics.friction_band import FrictionBand
from .statics.modes import mechanism_modes
from .statics.output_stiffness import output_stiffness
from .statics.standing import coordinates_of

QUANTITIES = {"revolute": "angle", "prismatic": "length"}
"""Quantity of the position of an actuator, by its motion."""


class MechanismReport(RobotReport):
    """Reports of a robot whose model is a mechanism."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.model = robot.model_as(MechanismModel)

    def check(self) -> Report:
        """Report of parts, loops, degrees of freedom, equilibrium with the actuators at their start, and actuators."""
        robot, mechanism = self.robot, self.model.mechanism
        rows = equations(mechanism, self.model.start, np.zeros(mechanism.velocity_count))
        held = int(np.linalg.matrix_rank(rows.loop)) if rows.loop.size else 0
        freedom = mechanism.velocity_count - held
        rest, failure = None, ""
        try:
            rest = MechanismEstimator(robot).solve({})
        except NoEquilibriumError as error:
            failure = str(error)
        notes = self._warnings(rest, failure)
        gap = float(np.max(np.abs(rows.loop_error), initial=0.0))
        massless = listing([body.name for body in mechanism.bodies if body.mass == 0.0]) or "none"
        mass = float(mechanism.flat.mass.sum())
        gravity = ", ".join(f"{x:g}" for x in mechanism.gravity) + " m/s^2" if mechanism.gravity.any() else "none"
        what = [
            ("bodies", f"{len(mechanism.bodies)}, {mass:.4g} kg, without mass: {massless}"),
            ("coordinates", f"{mechanism.velocity_count}, held by {mechanism.constraint_count} loop rows"),
            ("degrees of freedom", str(freedom)),
            ("widest gap at the start", f"{gap:.2g} (m, or sine of an angle)"),
            ("gravity", gravity),
        ]
        if mechanism.ground is not None:
            touching = ", ".join(f"{part.name} ({part.kind})" for part in mechanism.contact_parts)
            what += [("ground", mechanism.ground.words), ("may touch it", touching)]
        what += [("output", f"{o.name} on {o.body}, controls {', '.join(o.controlled)}") for o in robot.outputs]
        what += singularity_rows(robot)
        if robot.tour:
            what.append(("tour", ", ".join(stop.name for stop in robot.tour)))
        what += closing_rows(robot)
        parts: list[Section | str] = [Section(robot.name, ("", ""), what), mechanism.topology()]
        if rest is not None:
            parts.append(Section("shape at rest, actuators at their start", ("", ""), _shape_rows(rest, mechanism)))
            parts += _route_parts(rest.equilibrium) + _ground_parts(rest.equilibrium)
            parts += friction_parts(robot, rest.equilibrium)
        if robot.actuators:
            heads = ("actuator", "motion", "limits", "effort at rest", "effort limit", "largest rate")
            parts.append(Section("actuators", heads, self._actuator_rows(rest)))
        return Report(
            self._figures(rest, freedom, gap, notes),
            [*parts, *provenance_section(robot)],
            notes=notes,
            verdict="It stands, every cable is tight and within its limits."
            if mechanism.cables or mechanism.routes
            else "It stands within its limits.",
        )

    def modes(self) -> Report:
        """Report of the modes at rest with the actuators held at their start."""
        notes = []
        laws = self.robot.mechanism.flat.resistances[:, LAW:]
        if np.any(laws[:, FRICTION] > 0.0):
            slowest = float(np.min(laws[laws[:, FRICTION] > 0.0, SPEED]))
            notes.append(
                f"Coulomb friction of joints is regularised (smallest friction_speed {slowest:g} rad/s or m/s), as in "
                "simulation: at rest it damps strongly, so that some modes decay fast and others creep. Motions that "
                "slide are damped less than these modes."
            )
        found = self.mode_shapes().modes
        return mode_report(self.robot.name, self.robot.description, found, "at rest, actuators held", notes)

    def mode_shapes(self) -> ModeShapes:
        """Modes at rest with the actuators held at their start, and their mode shapes."""
        model = self.model
        joints = model.driven_joints(self.robot.actuators)
        solver = MechanismEquilibriumSolver(model.mechanism, joints)
        shape = solver.solve(model.start)
        output = self.robot.outputs[0] if self.robot.outputs else None
        found = mechanism_modes(solver, shape, output)  # type: ignore[arg-type]
        tensions = MechanismEstimator(self.robot).solve({}).tensions
        return ModeShapes(shape.q, found, tensions, lambda step: solver.moved(shape.q, step))

    def stiffness(self) -> Report:
        """Stiffness of the output at rest with the actuators held at their start."""
        robot = self.robot
        rest = MechanismEstimator(robot).solve({})  # rejects rigid cables under compression
        found = output_stiffness(robot, rest.equilibrium)
        return stiffness_report(robot.name, robot.description, found, "at rest, actuators held")

    def forward_kinematics(self, options: KinematicsOptions) -> Report:
        """Report of the equilibrium for given actuator positions; the other actuators stay at their start."""
        if unfit := [f"--{name}" for name in options.for_structures]:
            raise TensegrityError(
                f"{', '.join(unfit)}: {self.robot.name} is a mechanism; --length, --force, --payload, --plot-to and "
                "--json are for it."
            )
        found = MechanismEstimator(self._loaded(options)).solve(read_positions(options.lengths, self.robot))
        at = {each.name: self.model.mechanism.positions_of(self.model.joint_of(each.drives))
              for each in self.robot.actuators}  # fmt: skip
        positions = {name: float(found.q[where][0]) for name, where in at.items()}
        figures = {**equilibrium_figures(found.pose, found.equilibrium, found.tensions), "positions": positions}
        title = f"shape of {self.robot.name}"
        return Report(
            figures,
            equilibrium_parts(self.robot, title, found.pose, found.equilibrium, found.tensions, positions),
            notes=beyond_limits(self.robot, positions),
            shape=(found.q, np.array([found.tensions.get(name, np.nan) for name in self.model.cable_names])),
        )

    def inverse_kinematics(self, result: Any) -> Report:
        end, steps = result.path[-1], len(result.path) - 1
        names = [cable.name for cable in self.model.mechanism.cables]
        tensions = dict(zip(names, end.tensions.tolist(), strict=True))
        positions = dict(zip((each.name for each in self.robot.actuators), end.positions.tolist(), strict=True))
        figures = {
            "reached": True, "positions": positions, "steps": steps,
            **equilibrium_figures(end.pose, end.statics, tensions),
        }  # fmt: skip
        title = f"{self.robot.name} at the goal, {steps} steps from rest"
        parts = equilibrium_parts(self.robot, title, end.pose, end.statics, tensions, positions)
        words = free_axes(self.robot, "the actuators")
        return Report(figures, [*parts, words] if words else parts)

    def _loaded(self, options: KinematicsOptions) -> Robot:
        """Robot with the loads of `tensegrity fk` in addition to its own loads."""
        mechanism, bodies = self.model.mechanism, self.model.body_names
        pushed = [
            Load(f"--force {k}", name, wrench[:3], wrench[3:])
            for k, (name, wrench) in enumerate(read_wrenches(options.forces, bodies))
        ]
        carried = [
            Payload(f"--payload {k}", name, mass)
            for k, (name, mass) in enumerate(read_payloads(options.payloads, "body", bodies))
        ]
        if not pushed and not carried:
            return self.robot
        loaded = replace(mechanism, loads=(*mechanism.loads, *pushed), payloads=(*mechanism.payloads, *carried))
        return replace(self.robot, model=replace(self.model, mechanism=loaded))

    def not_stable(self, called: str) -> str:
        return (
            f"{self.robot.name} does not stay in its shape with its actuators at their start, so it cannot be driven. "
            f"`tensegrity check {called}` shows more; tighter cables give it a prestress."
        )

    def _efforts(self, rest: Estimate | None) -> list[float]:
        mechanism = self.model.mechanism
        if rest is None:
            return [float("nan")] * len(self.robot.actuators)
        joints = self.model.driven_joints(self.robot.actuators)
        return [float(rest.equilibrium.effort[mechanism.velocities_of(name)][0]) + 0.0 for name in joints]

    def _actuator_rows(self, rest: Estimate | None) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for each, effort in zip(self.robot.actuators, self._efforts(rest), strict=True):
            position, rate, push = each.units
            rows.append(
                (
                    each.name if each.name == each.drives else f"{each.name} ({each.drives})",
                    each.motion,
                    f"{each.position[0]:.4g} to {each.position[1]:.4g} {position}",
                    "-" if np.isnan(effort) else f"{effort:.3g} {push}" if abs(effort) > 1e-9 else f"0 {push}",
                    f"{each.effort:.4g} {push}",
                    f"{each.rate:.4g} {rate}",
                )
            )
        return rows

    def _warnings(self, rest: Estimate | None, failure: str) -> list[str]:
        """Warnings for the user before driving the robot."""
        notes = []
        if rest is None:
            notes.append(f"no shape at rest was found: {failure}")
        else:
            if not rest.stable:
                notes.append(
                    "it does not stay in this shape: a motion without resistance remains"
                    + (f", of {rest.equilibrium.loose}." if rest.equilibrium.loose else ".")
                )
            notes += standing_notes(rest.equilibrium)
            if rest.slack:
                notes.append(f"slack at rest: {listing(list(rest.slack))}.")
            for each, effort in zip(self.robot.actuators, self._efforts(rest), strict=True):
                if abs(effort) > each.effort:
                    push = each.units[2]
                    notes.append(
                        f"{each.name} needs {effort:.3g} {push} at rest, above its limit of {each.effort:.3g} {push}."
                    )
                for name in self.model.wound_by(each):
                    if 0.0 < rest.tensions.get(name, 0.0) < each.minimum_tension:
                        carries = each.name if name == each.name else f"cable {name}, wound by {each.name},"
                        notes.append(
                            f"{carries} carries {rest.tensions[name]:.3g} N, below its floor of "
                            f"{each.minimum_tension:.3g} N."
                        )
        return notes + self._narrowed_limits() + drive_notes(self.robot)

    def _narrowed_limits(self) -> list[str]:
        """Note on the actuators whose limits in the file lead beyond what their cables permit."""
        ranges = self.model.driven_ranges()
        ends = [
            f"{each.name} at {end:.4g} rad ({', '.join(self.model.wound_by(each))})"
            for each in self.robot.actuators
            for end, possible in zip(each.position, ranges.get(each.drives, ()), strict=False)
            if end == possible
        ]
        return [f"cables and drums end before the limits in the file: {listing(ends)}."] if ends else []

    def _figures(self, rest: Estimate | None, freedom: int, gap: float, notes: list[str]) -> dict[str, Any]:
        mechanism = self.model.mechanism
        at_rest = None
        if rest is not None:
            position, quaternion = rest.pose if rest.pose is not None else (None, None)
            at_rest = {
                "position_m": position,
                "quaternion_wxyz": quaternion,
                "tensions_N": dict(rest.tensions),
                "stable": rest.stable,
                "softest": rest.softest,
                "residual": rest.residual,
                "iterations": rest.equilibrium.iterations,
                **({"contacts_N": contact_forces(rest.equilibrium.contacts)} if rest.equilibrium.contacts else {}),
                **({"standing": vars(rest.equilibrium.standing)} if rest.equilibrium.standing is not None else {}),
            }
        return {
            **facts(self.robot),
            "bodies": len(mechanism.bodies),
            "mass_kg": float(mechanism.flat.mass.sum()),
            "coordinates": mechanism.velocity_count,
            "loop_rows": mechanism.constraint_count,
            "degrees_of_freedom": freedom,
            "widest_gap": gap,
            "topology": mechanism.topology().splitlines(),
            "gravity_m_per_s2": mechanism.gravity,
            "at_rest": at_rest,
            "actuators": [
                {
                    "name": each.name,
                    "drives": each.drives,
                    "motion": each.motion,
                    "position": each.position,
                    "rate": each.rate,
                    "effort": each.effort,
                    "minimum_tension_N": each.minimum_tension,
                    "effort_at_rest": effort,
                }
                for each, effort in zip(self.robot.actuators, self._efforts(rest), strict=True)
            ],
            "outputs": [{"name": o.name, "controlled": o.controlled} for o in self.robot.outputs],
            "tour": [stop.name for stop in self.robot.tour],
            "provenance": provenance_figures(self.robot),
            "notes": notes,
        }


def _stable(shape: MechanismEquilibrium, mechanism: Mechanism, no: str) -> str:
    """Whether a shape is stable, with the motions that do not count for it, since they change no force."""
    if not shape.stable or not shape.idle.shape[1]:
        return "yes" if shape.stable else no
    free = coordinates_of(mechanism, np.linalg.norm(shape.idle, axis=1))
    return f"yes, but nothing holds motions of {free} ({shape.idle.shape[1]}): they change no force"


def _shape_rows(rest: Estimate, mechanism: Mechanism) -> list[tuple[str, str]]:
    rows = []
    if rest.pose is not None:
        rows.append(("output", f"{millimetres(rest.pose[0])}, {turned(rest.pose[1])}"))
    pulls = [tension for tension in rest.tensions.values() if np.isfinite(tension)]
    if pulls:
        rows.append(("tension of cables", span(pulls, "N")))
        if rest.equilibrium.strain.size:
            rows.append(("strain of cables", span(100.0 * rest.equilibrium.strain, "%")))
    if np.isfinite(rest.softest):
        rows.append(("stable", _stable(rest.equilibrium, mechanism, "no")))
        rows.append(("softest motion", f"{rest.softest:.4g} (N/m or N m/rad, of coordinates of size one)"))
    rows += standing_rows(rest.equilibrium)
    rows.append(("residual", f"{rest.residual:.2g} N or N m after {rest.equilibrium.iterations} steps"))
    return rows


def standing_rows(shape: MechanismEquilibrium) -> list[tuple[str, str]]:
    """What friction at its feet carries of a robot that only the ground holds."""
    if shape.standing is None:
        return []
    used = f"; {shape.standing.foot} uses {100.0 * shape.standing.used:.3g} % of it" if shape.standing.foot else ""
    return [("held by friction", f"sliding of the whole robot along the ground{used}")]


def standing_notes(shape: MechanismEquilibrium) -> list[str]:
    """Warnings about a robot that only the ground holds."""
    standing = shape.standing
    if standing is None or not standing.loose:
        return []
    return [
        f"it stands in a singular shape: no stiffness resists a motion of {standing.loose}, only friction while the "
        f"feet stick. Where they slide it collapses, growing with {standing.rate:.3g} 1/s; controllers refuse goals "
        "for which feet slide. Bend the joints, or give them a stiffness (resistance) or an actuator."
    ]


def _route_parts(shape: MechanismEquilibrium) -> list[Section | str]:
    """Report of the routed cables at an equilibrium; empty if there are none."""
    rows = [
        (
            name,
            f"{each.length:.6g} m",
            f"{each.rest_length:.6g} m",
            ", ".join(f"{tension:.4g}" for tension in each.tensions) + " N",
            ", ".join(f"{np.rad2deg(wrap):.1f} deg" for wrap in each.wraps[1:-1] if wrap) or "-",
            f"{1e3 * each.sag:.5g} mm" if each.sag else "-",
        )
        for name, each in shape.routes.items()
    ]
    heads = ("cable", "length", "rest length", "tensions along it", "wrapped by", "sags by")
    return [Section("routed cables", heads, rows)] if rows else []


def friction_parts(robot: Robot, shape: MechanismEquilibrium) -> list[Section | str]:
    """Report of the pose error of the output due to friction of routed cables; empty without friction."""
    model = robot.model_as(MechanismModel)
    rubbing = [route for route in model.routes if route.rubs]
    if not rubbing or not robot.outputs:
        return []
    title, heads = "friction of routed cables: about how far it may hold the output off", ("", "")
    if any(route.rigid for route in rubbing):
        return [Section(title, heads, [("not stated", "rigid cables: what slips there follows from the motion alone")])]
    try:
        found = FrictionBand(model, model.driven_joints(robot.actuators)).bounds(shape.q, robot.output)
    except NoEquilibriumError as error:
        return [Section(title, heads, [("not found", str(error))])]
    (position, _), (low, high) = found
    rows = [("without friction", millimetres(position))]
    for k, axis in enumerate(("x", "y", "z", "rx", "ry", "rz")):
        if axis in robot.output.controlled:
            size, unit = (1e3, "mm") if k < 3 else (180.0 / np.pi, "deg")
            rows.append((f"{robot.output.name} {axis}", f"{size * low[k]:+.3g} to {size * high[k]:+.3g} {unit}"))
    return [Section(title, heads, rows)]


def _ground_parts(shape: MechanismEquilibrium) -> list[Section | str]:
    """Report of the ground forces at an equilibrium; empty without contact."""
    rows = [
        (name, f"{np.linalg.norm(force):.4g} N", ", ".join(f"{part:.4g}" for part in force) + " N", str(len(points)))
        for name, points in shape.contacts.items()
        for force in (points[:, 1].sum(axis=0),)
    ]
    heads = ("on the ground", "force", "along x, y, z", "points that touch")
    return [Section("ground, without friction unless it alone holds the robot", heads, rows)] if rows else []


def read_positions(items: Sequence[str], robot: Robot) -> dict[str, float]:
    """Positions [rad or m] by actuator from texts such as "B1=0.5" or "B1=30 deg".

    Raises:
        TensegrityError: a text does not have this form, an actuator is unknown or repeated, or a unit does not fit.
    """
    result: dict[str, float] = {}
    actuators = {each.name: each for each in robot.actuators}
    form = f"NAME=POSITION, for example {next(iter(actuators), 'a')}=0.5"
    for item in items:
        name, value = split_item(item, "--length", form, "actuator", list(actuators))
        if name in result:
            raise TensegrityError(f"--length {item!r}: {name} is given twice.")
        result[name] = read_quantity(value, QUANTITIES[actuators[name].motion], f"--length {item!r}:")
    return result


def read_wrenches(items: Sequence[str], bodies: Sequence[str]) -> list[tuple[str, Any]]:
    """Bodies and wrenches (6,) [N and N m] from texts such as "plate=0,0,-5N" or "plate=0,0,-5,0,0.1,0".

    Raises:
        TensegrityError: a text does not have this form, or a body is unknown.
    """
    result = []
    for item in items:
        name, value = split_item(item, "--force", f"BODY=X,Y,Z, for example {bodies[-1]}=0,0,-5N", "body", bodies)
        if value.count(",") == 5:
            parts = value.split(",")
            force = read_vector(",".join(parts[:3]), "--force", kind="force")
            moment = read_vector(",".join(parts[3:]), "--force", kind="torque")
        else:
            force, moment = read_vector(value, "--force", kind="force"), np.zeros(3)
        result.append((name, np.concatenate((force, moment))))
    return result


def equilibrium_figures(
    pose: Pose | None, shape: MechanismEquilibrium, tensions: Mapping[str, float]
) -> dict[str, Any]:
    """Data of an equilibrium: pose of the output, tensions [N] by cable, and other figures."""
    position, quaternion = pose if pose is not None else (None, None)
    return {
        "position_m": position,
        "quaternion_wxyz": quaternion,
        "tensions_N": dict(tensions),
        "stable": shape.stable,
        "softest": shape.softest,
        "residual": shape.residual,
        "iterations": shape.iterations,
        **({"routed_cables": {name: vars(each) for name, each in shape.routes.items()}} if shape.routes else {}),
        **({"contacts_N": contact_forces(shape.contacts)} if shape.contacts else {}),
        **({"standing": vars(shape.standing)} if shape.standing is not None else {}),
    }


def pulls_at(
    model: MechanismModel, actuator: Actuator, shape: MechanismEquilibrium, tensions: Mapping[str, float]
) -> list[float]:
    """Tensions [N] of the cables at what an actuator turns: at its pulley or drum; on both sides of a pulley on which a
    routed cable holds between its ends."""
    joint = model.joint_of(actuator.drives)
    found = [tensions[entry.name] for entry in model.entries if entry.joints[1] == joint and entry.name in tensions]
    for cable, route in zip(model.routes, model.mechanism.routes, strict=True):
        strands, begins = shape.routes[cable.name].tensions, route.holding
        for k, point in enumerate(cable.route):
            if point.joint == joint:
                before, after = (int(np.searchsorted(begins, k, side)) - 1 for side in ("left", "right"))
                sides = {before, after} if 0 < k < len(cable.route) - 1 else {after if k == 0 else before}
                found += [strands[side] for side in sorted(sides)]
    return [pull for pull in found if np.isfinite(pull)]


def equilibrium_parts(
    robot: Robot,
    title: str,
    pose: Pose | None,
    shape: MechanismEquilibrium,
    tensions: Mapping[str, float],
    positions: Mapping[str, float],
) -> list[Section | str]:
    """Report of an equilibrium; tensions [N] by cable, positions [rad or m] by actuator."""
    model = robot.model_as(MechanismModel)
    slack = [name for name, tension in tensions.items() if tension <= 0.0]
    rows = [(f"{robot.outputs[0].name} at", f"{millimetres(pose[0])}, {turned(pose[1])}")] if pose is not None else []
    rows += [
        ("stable", _stable(shape, model.mechanism, "no: a motion without resistance remains")),
        *standing_rows(shape),
        ("slack", ", ".join(slack) or "none"),
        ("residual", f"{shape.residual:.1e} N or N m after {shape.iterations} iterations"),
    ]
    lines = []
    for each in robot.actuators:
        pulls = pulls_at(model, each, shape, tensions)
        lines.append(
            (
                each.name,
                f"{positions[each.name] + 0.0:.4f} {each.units[0]}",
                f"{each.position[0]:.4g} to {each.position[1]:.4g}",
                ", ".join(f"{tension:.4g}" for tension in pulls) + " N" if pulls else "-",
            )
        )
    heads = ("name", "position", "limits", "tension")
    sections: list[Section | str] = [Section(title, ("", ""), rows)]
    if lines:
        sections.append(Section("actuators", heads, lines))
    return [*sections, *_route_parts(shape), *_ground_parts(shape), *friction_parts(robot, shape)]
