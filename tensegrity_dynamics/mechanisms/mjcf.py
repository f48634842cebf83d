"""Export of a mechanism to MJCF: bodies on a tree of joints, loops as equalities, cables as tendons.

**Cables.** The end of a cable is a body on the block: a hinge about the pulley axis, whose angle is the sum of the
pulley and involute angles, then a slide along the cable at the distance of the pulley radius. This is exactly the
involute joint (000, 3.1), for any number of turns. The elongation u = l - r phi is a linear function of slide, hinge
and pulley coordinates, so that a fixed tendon with the stiffness E A / l0 pulls like the cable. l0 is the rest length
at the exported configuration; it is constant in MuJoCo.

**Loops.** An auxiliary body without shape on the predecessor has the free motions of the loop. It is welded to the
successor (or connected, if the loop leaves all rotations free).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from ..errors import NoEquilibriumError, TensegrityError
from ..robots.formatting import listing
from ..robots.mjcf import (
    LEAST_PART,
    SLACK_OFFSET,
    Export,
    add,
    document_text,
    new_document,
    numbers,
    orientation,
)
from ..robots.robot import Robot
from .body_mesh import BodyMesh
from .body_poses import BodyPoses
from .cable_routing import CableEntry
from .dynamics.equations_of_motion import evaluate
from .dynamics.rigid_tensions import RigidTensions
from .frame import Frame
from .loop_joints import Loop
from .mechanism import WORLD, Joint
from .mechanism_model import MechanismModel
from .mjcf_routes import RouteWriter
from .primitives import Primitive
from .resistance import Resistance
from .routing.columns import COUNT, FIRST
from .statics.equilibrium_solver import MechanismEquilibriumSolver
from .workspace import make_workspace

STOP_IMPEDANCE = 1e-4
"""Impedance d of a stop: the least value that MuJoCo accepts. The force of a limit is the inertia at the start divided
by (1 - d), times the acceleration of `solreflimit`, minus a fraction d of the other accelerations. So a small d makes
the limit a spring and a damper."""
LOOP_SOLVER = {"solref": [2e-4, 1.0], "solimp": [0.9999, 0.9999, 1e-3, 0.5, 2.0]}
"""Solver parameters of equalities: the largest stiffness that MuJoCo allows at the exported time step."""

LEAST_VERTICES = 4
"""Least number of vertices of a mesh in MuJoCo."""

FREE_MOTIONS: dict[str, tuple[str, ...]] = {
    "point": (), "point_xy": ("slide z",), "point_z": ("slide x", "slide y"), "fixed": (), "revolute": ("hinge z",),
    "cylindrical": ("slide z", "hinge z"), "prismatic": ("slide z",),
    "planar": ("slide x", "slide y", "hinge z"), "universal": ("hinge x", "hinge y"),
}  # fmt: skip
"""Free motions of the auxiliary body of a loop; for point loops all rotations are free as well, by `connect`."""


def mechanism_mjcf(robot: Robot) -> Export:
    """Mechanism at its equilibrium with the actuators at their start, or at the start of the file without equilibrium.

    Raises:
        TensegrityError: a number of the file is not finite, or a joint is of a kind that MuJoCo does not have.
    """
    return _Writer(robot).export()


class _Writer:
    def __init__(self, robot: Robot) -> None:
        self.robot, self.model = robot, robot.model_as(MechanismModel)
        mechanism = self.mechanism = self.model.mechanism
        self.differences: list[str] = []
        held = self.model.driven_joints(robot.actuators)
        try:
            shape = MechanismEquilibriumSolver(mechanism, held).solve(self.model.start)
            RigidTensions(self.model).refuse_pushing_at_rest(make_workspace(mechanism.flat), shape.q, shape.effort)
            self.q = shape.q
        except NoEquilibriumError:
            self.q = self.model.start
            self.differences.append("no equilibrium was found; the bodies stand at the start of the file.")
        poses = BodyPoses(self.model).update(self.q)
        self.positions, self.rotations = poses.positions, poses.rotations
        self.index, self.flat = mechanism.body_index, mechanism.flat
        self.least = LEAST_PART * (float(self.flat.mass.sum()) or 1.0)
        self.pulleys = {entry.joints[1]: entry for entry in self.model.entries}
        self.cables = {entry.joints[2]: entry for entry in self.model.entries}
        self.rubs = self.stops = False
        self.inertias = self.seen_inertias()
        self.lightened: list[str] = []

    def export(self) -> Export:
        mechanism = self.mechanism
        root = new_document(self.robot.name, mechanism.gravity)
        self.root = root
        if any(body.meshes for body in mechanism.bodies):
            self.assets = add(root, "asset")
        self.world = add(root, "worldbody")
        self.bodies: dict[str, ET.Element] = {WORLD: self.world}
        for joint in mechanism.joints:
            self.add_body(joint)
        self.equality = add(root, "equality")
        for loop in mechanism.loops:
            self.add_loop(loop)
        tendons = add(root, "tendon")
        for entry in self.model.entries:
            self.add_cable(tendons, entry)
        actuators = add(root, "actuator")
        self.add_actuators(actuators)
        if self.model.routes:
            self.add_routes(tendons, actuators)
        self.say_differences()
        return Export(document_text(root, self.differences), tuple(self.differences))

    # -- bodies and joints ------------------------------------------------------------------------------------------

    def pose(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Origin and axes of a body in the world."""
        i = self.index[name]
        return (np.zeros(3), np.eye(3)) if i < 0 else (self.positions[i], self.rotations[i])

    def between(self, parent: str, body: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Origin and axes of a body in the frame of another one."""
        (origin, axes), (position, turn) = self.pose(parent), self.pose(body)
        return axes.T @ (position - origin), axes.T @ turn

    def add_body(self, joint: Joint) -> None:
        cable = self.cables.get(joint.name)
        # the end of a cable is a child of the block, because its hinge combines the pulley and involute angles
        parent = f"{cable.name}-block" if cable is not None else joint.parent
        origin, axes = self.between(parent, joint.body)
        element = add(self.bodies[parent], "body", name=joint.body, pos=origin, quat=orientation(axes))
        self.bodies[joint.body] = element
        self.add_inertia(element, joint.body)
        if cable is not None:
            self.add_involute(element, joint)
        else:
            self.add_joint(element, joint)
        body = next(body for body in self.mechanism.bodies if body.name == joint.body)
        for shape in () if body.meshes else body.shapes:
            _add_shape(element, shape)
        for k, mesh in enumerate(body.meshes):
            self.add_mesh(element, f"{body.name}.{k}", mesh)

    def add_mesh(self, element: ET.Element, name: str, mesh: BodyMesh) -> None:
        """Add a mesh for display only, without mass and collision; its triangles are embedded in the document."""
        if len(mesh.mesh.vertices) < LEAST_VERTICES:
            self.differences.append(f"mesh {name} is left out: MuJoCo needs {LEAST_VERTICES} vertices at least.")
            return
        try:
            _ = mesh.solid
            inertia = None
        except TensegrityError:  # MuJoCo requires a volume for every mesh that is not a shell
            inertia = "shell"
        add(
            self.assets, "mesh", name=name, vertex=mesh.mesh.vertices, inertia=inertia,
            face=" ".join(map(str, mesh.mesh.triangles.ravel().tolist())),
        )  # fmt: skip
        add(
            element, "geom", type="mesh", mesh=name, pos=mesh.placement.origin,
            quat=orientation(mesh.placement.axes), contype="0", conaffinity="0", mass="0", group="1",
        )  # fmt: skip

    def add_inertia(self, element: ET.Element, body: str) -> None:
        i = self.index[body]
        mass, centre = float(self.flat.mass[i]), self.flat.centre[i]
        moments, axes = np.linalg.eigh(self.flat.inertia[i])
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] = -axes[:, 0]
        if np.array_equal(self.flat.inertia[i], np.diag(np.diag(self.flat.inertia[i]))):
            moments, axes = np.diag(self.flat.inertia[i]).copy(), np.eye(3)
        if mass == 0.0:
            element.set("gravcomp", "1")
        floor = self.least * 1e-4
        if mass < self.least or (moments < floor).any():
            self.lightened.append(body)
        add(
            element, "inertial", pos=centre, mass=max(mass, self.least), quat=orientation(axes),
            diaginertia=np.maximum(moments, floor),
        )  # fmt: skip

    def seen_inertias(self) -> NDArray[np.float64]:
        """(nv,) inertias [kg m^2 or kg] for MuJoCo's limits: 1 / (M^-1)_ii of the tree in the exported
        configuration."""
        work = make_workspace(self.flat)
        evaluate(self.flat, np.array(self.q), np.zeros(self.mechanism.velocity_count), work)
        mass = work.mass + 1e-10 * np.diag(work.mass).max(initial=1e-300) * np.eye(len(work.mass))
        return np.asarray(1.0 / np.diag(np.linalg.inv(mass)))

    def resisted(self, law: Resistance | None, ref: float, index: int = 0) -> dict[str, object]:
        """Attributes of a joint with a resistance and the exported position `ref`; `index` is its index in v."""
        values: dict[str, object] = {"ref": ref}
        if law is None:
            return values
        if law.stiffness:
            values |= {"stiffness": law.stiffness, "springref": law.rest}
        if law.damping:
            values["damping"] = law.damping
        if law.friction:
            values["frictionloss"] = law.friction
            self.rubs = True
        if law.has_stops:
            low, high = np.clip(law.limits, -1e6, 1e6)
            d = STOP_IMPEDANCE
            part = (1.0 - d) / self.inertias[index]
            values |= {
                "range": [low, high], "solimplimit": [d, d, 1e-3, 0.5, 2.0],
                "solreflimit": [-law.stop_stiffness * part, -law.stop_damping * part],
            }  # fmt: skip
            self.stops = True
        return values

    def add_joint(self, element: ET.Element, joint: Joint) -> None:
        q = self.q[self.mechanism.positions_of(joint.name)]
        first_in_v = self.mechanism.velocities_of(joint.name).start
        laws = joint.resistance
        armature = joint.armature or None
        if joint.kind in ("revolute", "prismatic"):
            kind = "hinge" if joint.kind == "revolute" else "slide"
            add(
                element, "joint", name=joint.name, type=kind, axis=joint.axis, armature=armature,
                **self.resisted(laws[0] if laws else None, float(q[0]), first_in_v),
            )  # fmt: skip
        elif joint.kind == "universal":
            # the first axis is fixed in the predecessor, the second in the successor
            first = np.array([np.cos(q[1]), 0.0, np.sin(q[1])])
            for k, (part, axis) in enumerate((("x", first), ("y", np.array([0.0, 1.0, 0.0])))):
                add(
                    element, "joint", name=f"{joint.name}.{part}", type="hinge", axis=axis, armature=armature,
                    **self.resisted(laws[k] if laws else None, float(q[k]), first_in_v + k),
                )  # fmt: skip
        elif joint.kind == "spherical":
            values = self.resisted(laws[0] if laws else None, 0.0)
            del values["ref"]
            if values.pop("springref", None) is not None and not np.allclose(np.abs(q[0]), 1.0, atol=1e-9):
                self.differences.append(f"joint {joint.name}: its spring rests at the exported shape.")
            add(element, "joint", name=joint.name, type="ball", armature=armature, **values)
        elif joint.kind == "floating" and joint.parent == WORLD:
            add(element, "freejoint", name=joint.name)
        elif joint.kind == "floating":
            for part, axis in zip("xyz", self.between(joint.parent, joint.body)[1], strict=True):
                add(element, "joint", name=f"{joint.name}.{part}", type="slide", axis=axis)
            add(element, "joint", name=f"{joint.name}.turn", type="ball")
        elif joint.kind != "fixed":
            raise TensegrityError(
                f"joint {joint.name}: {joint.kind} joints cannot be exported to MuJoCo yet, and without its joint the "
                "body would be fixed; replace the joint by several of the kinds that MuJoCo has."
            )

    def add_involute(self, element: ET.Element, joint: Joint) -> None:
        """Add hinge and slide of the end of a cable, in the order and with the coordinates of the module docstring."""
        _, taut = self.cable_lengths(joint)
        pulley = self.cables[joint.name].joints[1]
        turn = float(
            self.q[self.mechanism.positions_of(pulley)][0] + self.q[self.mechanism.positions_of(joint.name)][0]
        )
        centre = np.array([-taut, -joint.radius, 0.0])
        add(element, "joint", name=f"{joint.name}.turn", type="hinge", axis=[0.0, 0.0, 1.0], pos=centre, ref=turn)
        # the offset keeps the elongation measured by the tendon positive for a slack cable
        add(element, "joint", name=f"{joint.name}.length", type="slide", axis=[1.0, 0.0, 0.0], ref=taut + SLACK_OFFSET)

    def cable_lengths(self, joint: Joint) -> tuple[float, float]:
        """Rest length and taut length [m] of a cable in the exported configuration."""
        q = self.q[self.mechanism.positions_of(joint.name)]
        rest = float(joint.radius * q[0])
        second = {
            "involute_rigid": rest, "involute_u": rest + float(q[-1]), "involute_epsilon": rest * (1.0 + float(q[-1])),
            "involute_length": float(q[-1]),
        }  # fmt: skip
        return rest, second[joint.kind]

    # -- loops ------------------------------------------------------------------------------------------------------

    def add_loop(self, loop: Loop) -> None:
        before, after = loop.predecessor_frame, loop.successor_frame
        origin, axes = self.between(loop.predecessor, loop.successor)
        # frame of the successor relative to the body of the predecessor
        stand = Frame(origin + axes @ after.origin, _orthonormal(axes @ after.axes))
        motions = FREE_MOTIONS[loop.kind]
        is_ball = loop.kind.startswith("point") and loop.turning is None
        site = f"{loop.name}.after"
        add(self.bodies[loop.successor], "site", name=site, pos=after.origin, quat=orientation(after.axes))
        base = self.bodies[loop.predecessor]
        if motions or (not is_ball and loop.kind != "fixed"):
            base = add(base, "body", name=loop.name, pos=stand.origin, quat=orientation(stand.axes), gravcomp="1")
            add(base, "inertial", pos=np.zeros(3), mass=self.least, diaginertia=np.full(3, 1e-4 * self.least))
            self.add_free_motions(base, loop, motions, stand, before)
            pose: dict[str, object] = {}
        else:
            pose = {"pos": before.origin, "quat": orientation(before.axes if loop.kind == "point" else stand.axes)}
        add(base, "site", name=f"{loop.name}.before", **pose)
        tag = "connect" if is_ball else "weld"
        add(self.equality, tag, name=loop.name, site1=f"{loop.name}.before", site2=site, **LOOP_SOLVER)

    def add_free_motions(
        self, element: ET.Element, loop: Loop, motions: tuple[str, ...], stand: Frame, before: Frame
    ) -> None:
        # directions of the predecessor frame in the axes of the moving body
        local = stand.axes.T @ before.axes
        for motion in motions:
            kind, letter = motion.split()
            axis = local[:, "xyz".index(letter)]
            ref = 0.0
            law = None
            if kind == "slide":
                ref = float(before.axes[:, "xyz".index(letter)] @ (stand.origin - before.origin))
                law = loop.sliding
            elif loop.kind == "universal":
                axis = np.array([0.0, 1.0, 0.0]) if letter == "y" else axis
            else:
                ref = float(np.arctan2(local.T[1, 0], local.T[0, 0]))
                law = loop.turning
            add(element, "joint", name=f"{loop.name}.{kind}_{letter}", type=kind, axis=axis, **self.resisted(law, ref))
        if loop.kind.startswith("point") and loop.turning is not None:
            values = self.resisted(loop.turning, 0.0)
            del values["ref"]
            add(element, "joint", name=f"{loop.name}.turn", type="ball", **values)
        elif loop.kind == "universal" and loop.turning is not None:
            self.differences.append(f"loop {loop.name}: what resists its turn is left out.")

    # -- cables, actuators, loads -----------------------------------------------------------------------------------

    def add_cable(self, tendons: ET.Element, entry: CableEntry) -> None:
        _, pulley, involute = entry.joints
        joint = self.mechanism.joint(involute)
        radius = joint.radius
        if entry.variant == "rigid":
            fixed = add(tendons, "fixed", name=entry.name)
            add(self.equality, "tendon", name=entry.name, tendon1=entry.name, **LOOP_SOLVER)
            self.differences.append(f"cable {entry.name} is rigid: its length is held in both directions.")
        else:
            rest, _ = self.cable_lengths(joint)
            area = np.pi * entry.cable_radius**2
            fixed = add(
                tendons, "fixed", name=entry.name, stiffness=area * entry.young / rest,
                damping=area * entry.damping / rest or None, springlength=[0.0, SLACK_OFFSET],
            )  # fmt: skip
        add(fixed, "joint", joint=f"{involute}.length", coef=1.0)
        add(fixed, "joint", joint=f"{involute}.turn", coef=-radius)
        add(fixed, "joint", joint=pulley, coef=radius)

    def add_routes(self, tendons: ET.Element, actuators: ET.Element) -> None:
        """Add the routed cables as spatial tendons, and the constant efforts of joints that belong to them."""
        work = make_workspace(self.flat)
        evaluate(self.flat, np.array(self.q), np.zeros(self.mechanism.velocity_count), work)
        poses = {name: self.pose(name) for name in self.bodies}
        writer = RouteWriter(self.mechanism, self.bodies, poses)
        for cable, route in zip(self.flat.routed_cables, self.model.routes, strict=True):
            if route.line_mass:
                self.differences.append(f"cable {route.name} sags here; MuJoCo's tendons have no weight.")
            if route.rigid:
                self.differences.append(
                    f"cable {route.name} does not stretch; MuJoCo limits its length by a soft limit."
                )
            first = int(cable[FIRST])
            writer.write(tendons, route, work.route_state[first : first + int(cable[COUNT])])
        for joint, effort in writer.efforts.items():
            add(
                actuators, "general", name=f"{joint}.winding", joint=joint, gaintype="fixed", gainprm=0.0,
                biastype="affine", biasprm=[effort, 0.0, 0.0],
            )  # fmt: skip
        self.differences += writer.differences

    def add_actuators(self, actuators: ET.Element) -> None:
        for each in self.robot.actuators:
            joint = self.model.joint_of(each.drives)
            add(actuators, "motor", name=each.name, joint=joint, ctrlrange=[-each.effort, each.effort])
        for load in self.mechanism.loads:
            site = f"load.{load.name}"
            add(self.bodies[load.body], "site", name=site, pos=load.point)
            if self.world.find("site[@name='world']") is None:
                add(self.world, "site", name="world")
            for k, value in enumerate((*load.force, *load.moment)):
                if value:
                    add(
                        actuators, "general", name=f"{site}.{k}", site=site, refsite="world", gear=np.eye(6)[k],
                        gaintype="fixed", gainprm=0.0, biastype="affine", biasprm=[value, 0.0, 0.0],
                    )  # fmt: skip

    def say_differences(self) -> None:
        say = self.differences.append
        if self.lightened:
            say(
                f"bodies have {self.least:.2g} kg and {1e-4 * self.least:.2g} kg m^2 at least, without weight of what "
                f"is added: {', '.join(self.lightened)}."
            )
        if self.model.entries:
            say("the stiffness and damping of a cable are those of its rest length in the exported shape.")
            lengths = [self.cable_lengths(self.mechanism.joint(entry.joints[2])) for entry in self.model.entries]
            strain = max(taut / rest - 1.0 for rest, taut in lengths)
            say("winding takes no energy of the cable along (000, 3.1.9): the pull on a pulley is exact, its change by "
                f"winding lacks the strain's part (up to {100.0 * strain:.2g} % of the stiffness).")  # fmt: skip
            if any(entry.damping for entry in self.model.entries):
                say("the damping of a cable acts while it is slack, too, and may push.")
            if any(np.isfinite(entry.longest) for entry in self.model.entries):
                say("cables may be wound past their ends.")
        if self.rubs:
            say("Coulomb friction is MuJoCo's frictionloss, a constraint, not a regularised law.")
        if self.stops:
            say("stops are MuJoCo's limits: springs and dampers within a part 1e-4 of the inertia that they see; the "
                "damping pulls where it is quicker than the spring.")  # fmt: skip
        if any(joint.armature for joint in self.mechanism.joints if joint.kind == "floating"):
            say("floating joints have no armature.")
        if self.mechanism.ground is not None:
            say("the ground is left out: its laws of force and friction have no equal there.")
        if self.robot.actuators:
            names = listing([each.name for each in self.robot.actuators])
            say(f"actuators are motors: limits of position and rate are left out ({names}).")


def _orthonormal(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest rotation, for axes with accumulated rounding errors."""
    u, _, v = np.linalg.svd(axes)
    return np.asarray(u @ v)


def _add_shape(element: ET.Element, shape: Primitive) -> None:
    """Add a shape for display only, without mass and collision."""
    size = {
        "cylinder": lambda s: [s[0], 0.5 * s[1]],
        "tube": lambda s: [0.5 * s[0], 0.5 * s[2]],
        "box": lambda s: [0.5 * each for each in s],
        "cube": lambda s: [0.5 * s[0]] * 3,
        "sphere": lambda s: [s[0]],
        "point": lambda s: None,
    }[shape.kind](shape.size)
    if size is None:
        return
    kind = {"tube": "cylinder", "cube": "box"}.get(shape.kind, shape.kind)
    add(
        element, "geom", type=kind, size=numbers(size), pos=shape.placement.origin,
        quat=orientation(shape.placement.axes), contype="0", conaffinity="0", mass="0", group="1",
    )  # fmt: skip
