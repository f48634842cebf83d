"""Import of a MuJoCo model (MJCF, or a URDF that MuJoCo reads) to a robot file: bodies, joints, sites, tendons, ground,
motors.

MuJoCo compiles the model (defaults, includes, frames, inertia of geoms), and the compiled model is converted. A body
with several joints becomes a chain of bodies without mass. The frame of a body is at the anchor of its joint, with the
axes of the joint. A reference position (`ref`) rotates the joint frame back, so that coordinates keep their values.
Properties that a robot file cannot represent, or represents differently, are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.meshes.stl import stl_bytes
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, rotation_vector
from tensegrity_dynamics.robots.mjcf import Export

FREE, BALL, SLIDE, HINGE = range(4)
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
JOINT_NAMES = {FREE: "floating", BALL: "spherical", SLIDE: "prismatic", HINGE: "revolute"}
GEOM_NAMES = {
    PLANE: "plane", HFIELD: "hfield", CAPSULE: "capsule", ELLIPSOID: "ellipsoid", MESH: "mesh",
}  # fmt: skip
SUBJECT = re.compile(r"(tendon|joint|actuator|equality) ([A-Za-z0-9_-]+)")
"""Pattern for the element that a sentence of the list refers to, if it refers to one."""
TAGS = {
    "tendon": "spatial|fixed", "joint": "joint|freejoint", "equality": "connect|weld|joint|tendon|flex",
    "actuator": "general|motor|position|velocity|intvelocity|damper|cylinder|muscle|adhesion|plugin|dcmotor",
}  # fmt: skip
"""MJCF elements of each kind."""
LONGEST_STRETCH = 0.2
"""Largest initial strain of a cable in a robot file [-]."""
LIGHT_BRANCH = 0.2
"""Largest part of its length that a branch of a tendon counts if it is left out [-]; exports have such branches for the
strain that winding takes along."""
OFF_PLANE = 1e-4
"""Largest offset of the two neighbours of a cylinder along its axis, relative to their distance [-]."""
CABLE_RADIUS = 5e-4
"""Radius of cables [m]. MuJoCo tendons have no radius; E is chosen such that E A has their value."""
INEXTENSIBLE = 1e5
"""Stiffness of tendons without stiffness in MuJoCo, where only a force pulls them [N/m]."""
SLIDER_MASS = 1e-4
"""Mass of the slider that pulls a tendon by a force [kg]."""
FIRST_HIDDEN = 3
"""First group of geoms that MuJoCo does not draw; models use these groups for collision geometry."""
DEEPEST = 1e-3
"""Largest initial depth of a part below the ground [m]."""
SINKING = 1e-3
"""Depth to which the weight sinks into the ground [m]; the contact law differs from that of MuJoCo."""
RATE = 20.0
"""Largest rate of motors [rad/s or m/s]; MuJoCo motors have no rate limit."""


def robot_from_mjcf(path: Path, name: str) -> Export:
    """Robot file of a model, and sentences on the differences from the model.

    Raises:
        TensegrityError: MuJoCo is missing or cannot read the file, or the model has no moving part.
    """
    try:
        import mujoco  # an extra
    except ModuleNotFoundError:
        raise TensegrityError("MuJoCo reads these files: pip install 'mujoco>=3.2,<5'.") from None
    if not path.is_file():
        raise TensegrityError(f"there is no file {path}.")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        said = ": ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise TensegrityError(f"MuJoCo {mujoco.__version__} cannot read {path}: {said}.") from None
    return _Reader(mujoco, model, path.name, name, path.read_text(encoding="utf-8", errors="replace")).export()


class _Reader:
    def __init__(self, mujoco: Any, model: Any, source: str, name: str, text: str) -> None:
        self.model, self.source, self.name, self._source_text = model, source, name, text
        self._given: dict[str, str] = {}
        self._mujoco, self._kinds = mujoco, mujoco.mjtObj
        self.differences: list[str] = []
        self.bodies: dict[str, dict[str, Any]] = {}
        self.joints: list[dict[str, Any]] = []
        self.loops: list[dict[str, Any]] = []
        self.cables: list[dict[str, Any]] = []
        self.actuators: list[dict[str, Any]] = []
        self.parts: list[dict[str, Any]] = []
        self.outputs: list[dict[str, Any]] = []
        self.contact: dict[str, Any] | None = None
        self.files: dict[str, bytes] = {}
        self._taken: set[str] = {"world"}
        self._body_names = ["world"] + [self.named("BODY", i, "body") for i in range(1, model.nbody)]
        self._joint_names = [self.named("JOINT", i, "joint") for i in range(model.njnt)]
        self._offsets = np.zeros((model.nbody, 3))
        self._of_joint: dict[int, dict[str, Any]] = {}

    def named(self, kind: str, index: int, what: str) -> str:
        """Unique name of a model object that is valid in robot files."""
        given = self._mujoco.mj_id2name(self.model, getattr(self._kinds, f"mjOBJ_{kind}"), index) or f"{what}_{index}"
        base = re.sub(r"[^A-Za-z0-9_-]", "_", given)[:56]
        base = base if re.match(r"[A-Za-z_]", base) else f"_{base}"
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        self._given[name] = given
        return name

    def say(self, sentence: str) -> None:
        if found := SUBJECT.match(sentence):
            sentence = f"{found[0]}{self.line_of(found[1], found[2])}{sentence[found.end() :]}"
        if sentence not in self.differences:
            self.differences.append(sentence)

    def line_of(self, what: str, name: str) -> str:
        """Text " (line 12)" for the element with this name; empty if the main file of the model does not contain it."""
        given = re.escape(self._given.get(name, name))
        found = re.search(rf"<(?:{TAGS[what]})\b[^<>]*\bname\s*=\s*[\"']{given}[\"']", self._source_text)
        return "" if found is None else f" (line {self._source_text.count(chr(10), 0, found.start()) + 1})"

    def export(self) -> Export:
        for body in range(1, self.model.nbody):
            self.add_body(body)
        if not self.joints:
            raise TensegrityError(f"{self.source} has no body beside the world.")
        for number in range(self.model.neq):
            self.add_equality(number)
        driven = self.add_motors()
        for tendon in range(self.model.ntendon):
            self.add_tendon(tendon, driven.get(tendon))
        self.add_ground()
        self.add_outputs()
        return Export(self.text(), tuple(self.differences), files=self.files)

    # -- bodies and joints --------------------------------------------------------------------------------------------

    def add_body(self, body: int) -> None:
        model, name = self.model, self._body_names[body]
        parent = int(model.body_parentid[body])
        axes = matrix_from_quaternion(model.body_quat[body])
        position = np.array(model.body_pos[body]) - self._offsets[parent]
        carrier, offset = self._body_names[parent], np.zeros(3)
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        numbers = range(first, first + count)
        if count == 0:
            self.joints.append({
                "name": self.fresh(f"{name}_fixed"), "kind": "fixed", "parent": carrier, "body": name,
                "frame": _frame(position, axes),
            })  # fmt: skip
        for joint in numbers:
            last = joint == numbers[-1]
            kind = int(model.jnt_type[joint])
            anchor = np.array(model.jnt_pos[joint]) if kind in (HINGE, BALL) else offset
            # the frame of the first joint is relative to the parent, the others to the previous body in the chain
            origin = position + axes @ anchor if joint == first else anchor - offset
            turned = axes if joint == first else np.eye(3)
            carried = name if last else self.fresh(f"{name}_{self._joint_names[joint]}")
            self.add_joint(joint, kind, carrier, carried, origin, turned)
            if not last:
                self.bodies[carried] = {}
            carrier, offset = carried, anchor
        self._offsets[body] = offset
        self.bodies[name] = self.mass_and_shapes(body, offset)

    def fresh(self, name: str) -> str:
        """Similar name that is not in use."""
        base, number = name[:58], 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name

    def add_joint(
        self, joint: int, kind: int, parent: str, body: str, origin: NDArray[np.float64], axes: NDArray[np.float64]
    ) -> None:
        model, name = self.model, self._joint_names[joint]
        made: dict[str, Any] = {"name": name, "kind": JOINT_NAMES[kind], "parent": parent, "body": body}
        axis, dof = np.array(model.jnt_axis[joint]), int(model.jnt_dofadr[joint])
        reference = float(model.qpos0[int(model.jnt_qposadr[joint])])
        if kind == FREE:
            made["start"] = [*origin.tolist(), *rotation_vector(axes).tolist()]
            self.joints.append(made)
            return
        if kind == HINGE:
            axes = axes @ matrix_from_vector(-reference * axis)
        elif kind == SLIDE:
            origin = origin - reference * (axes @ axis)
        made["frame"] = _frame(origin, axes)
        if kind in (HINGE, SLIDE):
            made["axis"] = axis.tolist()
            made["start"] = [reference]
        resistance = self.resistance(joint, kind, dof)
        if resistance:
            made["resistance"] = resistance
        if model.dof_armature[dof] and kind == BALL:
            self.say(f"joint {name}: a spherical joint has no armature.")
        self._of_joint[joint] = made
        self.joints.append(made)

    def resistance(self, joint: int, kind: int, dof: int) -> dict[str, float | list[float]]:
        model, name = self.model, self._joint_names[joint]
        made: dict[str, float | list[float]] = {}
        stiffness = float(np.ravel(model.jnt_stiffness[joint])[0])
        if stiffness:
            made["stiffness"] = stiffness
            if kind != BALL:
                made["rest"] = float(model.qpos_spring[int(model.jnt_qposadr[joint])])
        if float(np.ravel(model.dof_damping[dof])[0]):
            made["damping"] = float(np.ravel(model.dof_damping[dof])[0])
        if model.dof_frictionloss[dof]:
            made["friction"] = float(model.dof_frictionloss[dof])
            self.say("frictionloss is Coulomb friction here, regularised below a speed of 0.001 rad/s or m/s.")
        if not model.jnt_limited[joint]:
            return made
        if kind == BALL:
            self.say(f"joint {name}: the limits of a ball joint are left out.")
            return made
        constant, ratio = (float(each) for each in model.jnt_solref[joint])
        weight = 1.0 / max(float(model.dof_invweight0[dof]), 1e-12)
        low, high = (float(each) for each in model.jnt_range[joint])
        made["limits"] = [low, high]
        # far inside the limit, where the force is that of a spring and a damper (constraint space has A = 1 / weight)
        most = min(max(float(model.jnt_solimp[joint][1]), 1e-4), 0.9999)
        firm = weight * most / (1.0 - most)
        if constant > 0.0:
            made["stop_stiffness"] = firm / (most * (constant * ratio) ** 2)
            made["stop_damping"] = 2.0 * firm / (most * constant)
        else:
            made["stop_stiffness"], made["stop_damping"] = -constant * firm / most, -ratio * firm / most
        self.say("limits are springs and dampers on one side, as stiff as solref says for the inertia at the start.")
        return made

    def mass_and_shapes(self, body: int, offset: NDArray[np.float64]) -> dict[str, Any]:
        model = self.model
        made: dict[str, Any] = {}
        if model.body_mass[body] > 0.0:
            turn = matrix_from_quaternion(model.body_iquat[body])
            tensor = turn @ np.diag(model.body_inertia[body]) @ turn.T
            made["mass"] = float(model.body_mass[body])
            made["centre"] = (np.array(model.body_ipos[body]) - offset).tolist()
            made["inertia"] = [float(tensor[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        geoms = [int(geom) for geom in np.flatnonzero(np.array(model.geom_bodyid) == body)]
        shapes = [self.shape(geom, offset) for geom in geoms if int(model.geom_type[geom]) != MESH]
        if found := [each for each in shapes if each]:
            made["shapes"] = found
        if meshes := [self.mesh(geom, offset) for geom in geoms if int(model.geom_type[geom]) == MESH
                      and int(model.geom_group[geom]) < FIRST_HIDDEN]:  # fmt: skip
            made["mesh"] = meshes
            if found:
                self.say("of bodies with meshes the other shapes are not drawn.")
        return made

    def mesh(self, geom: int, offset: NDArray[np.float64]) -> dict[str, Any]:
        """Visual mesh as a separate file of triangles, scaled and compiled by MuJoCo from any source format."""
        model, number = self.model, int(self.model.geom_dataid[geom])
        given = self._mujoco.mj_id2name(model, self._kinds.mjOBJ_MESH, number) or "mesh"
        file = f"{self.name}_meshes/{re.sub(r'[^A-Za-z0-9_-]', '_', given)[:56]}_{number}.stl"
        if file not in self.files:
            first, count = int(model.mesh_vertadr[number]), int(model.mesh_vertnum[number])
            face, faces = int(model.mesh_faceadr[number]), int(model.mesh_facenum[number])
            vertices = np.array(model.mesh_vert[first : first + count], dtype=np.float64)
            self.files[file] = stl_bytes(vertices[np.array(model.mesh_face[face : face + faces])])
        self.say("meshes are drawn from files of their own, without materials; their mass is in their bodies.")
        at = np.array(model.geom_pos[geom]) - offset
        return {"file": file, "frame": _frame(at, matrix_from_quaternion(model.geom_quat[geom]))}

    def shape(self, geom: int, offset: NDArray[np.float64]) -> dict[str, Any]:
        """Visual shape of a geom; empty if robot files have no such shape."""
        model = self.model
        kind, size = int(model.geom_type[geom]), np.array(model.geom_size[geom])
        frame = _frame(np.array(model.geom_pos[geom]) - offset, matrix_from_quaternion(model.geom_quat[geom]))
        if kind == SPHERE:
            return {"kind": "sphere", "size": [float(size[0])], "frame": frame}
        if kind in (CYLINDER, CAPSULE):
            return {"kind": "cylinder", "size": [float(size[0]), 2.0 * float(size[1])], "frame": frame}
        if kind == BOX:
            return {"kind": "box", "size": (2.0 * size).tolist(), "frame": frame}
        self.say(f"geoms of kind {GEOM_NAMES.get(kind, kind)} are not drawn; their mass is in their bodies.")
        return {}

    # -- loops, motors, tendons ----------------------------------------------------------------------------------------

    def add_equality(self, number: int) -> None:
        model, kinds = self.model, self._mujoco.mjtEq
        kind, data = int(model.eq_type[number]), np.array(model.eq_data[number])
        name = self.named("EQUALITY", number, "loop")
        if kind not in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            self.say(f"equality {name} is left out: only connect and weld are loops.")
            return
        one, two = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
        if int(model.eq_objtype[number]) == int(self._kinds.mjOBJ_SITE):
            frames = [self.site_frame(one), self.site_frame(two)]
            one, two = int(model.site_bodyid[one]), int(model.site_bodyid[two])
        elif kind == int(kinds.mjEQ_CONNECT):
            frames = [(data[:3], np.eye(3)), (data[3:6], np.eye(3))]
        else:
            frames = [(data[3:6], matrix_from_quaternion(data[6:10])), (np.zeros(3), np.eye(3))]
        before, after = (
            _frame(at - self._offsets[body], axes) for (at, axes), body in zip(frames, (one, two), strict=True)
        )
        self.loops.append({
            "name": name, "kind": "point" if kind == int(kinds.mjEQ_CONNECT) else "fixed",
            "before": self._body_names[one], "after": self._body_names[two], "frame_before": before,
            "frame_after": after,
        })  # fmt: skip
        self.say("equalities hold exactly here, not by a soft constraint.")

    def site_frame(self, site: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        model = self.model
        return np.array(model.site_pos[site]), matrix_from_quaternion(model.site_quat[site])

    def add_motors(self) -> dict[int, int]:
        """Add the actuators of joints; returns the actuators that pull tendons, by tendon."""
        model, kinds = self.model, self._mujoco.mjtTrn
        of_tendons: dict[int, int] = {}
        for number in range(len(model.actuator_trntype)):
            name, kind = self.named("ACTUATOR", number, "motor"), int(model.actuator_trntype[number])
            target = int(model.actuator_trnid[number][0])
            if kind == int(kinds.mjTRN_TENDON):
                of_tendons[target] = number
                continue
            joint = self._of_joint.get(target) if kind == int(kinds.mjTRN_JOINT) else None
            if joint is None or joint["kind"] not in ("revolute", "prismatic"):
                self.say(f"actuator {name} is left out: it drives neither a hinge nor a slide, nor a tendon.")
                continue
            if not np.any(model.actuator_gainprm[number]):
                self.say(f"actuator {name} is left out: it has no input. Its effort is {self.constant(number)}.")
                continue
            if joint["name"] in (each["drives"] for each in self.actuators):
                self.say(f"actuator {name} is left out: another one drives its joint already.")
                continue
            gear = abs(float(model.actuator_gear[number][0])) or 1.0
            dof = int(model.jnt_dofadr[target])
            span = 2.0 * np.pi if joint["kind"] == "revolute" else 10.0
            limits = np.array(model.jnt_range[target]) if model.jnt_limited[target] else np.array([-span, span])
            made = {
                "name": name, "drives": joint["name"], "position": limits.tolist(), "rate": RATE,
                "effort": self.largest_force(number) * gear,
            }  # fmt: skip
            if model.dof_armature[dof]:
                made["rotor_inertia"] = float(model.dof_armature[dof])
            self.actuators.append(made)
            self.say("actuators have limits, not control laws: gains of position and velocity servos are left out, "
                     f"and rates are {RATE:g} rad/s or m/s.")  # fmt: skip
        driven = {each["drives"] for each in self.actuators}
        for row, made in self._of_joint.items():
            dof = int(model.jnt_dofadr[row])
            if made["kind"] in ("revolute", "prismatic") and model.dof_armature[dof] and made["name"] not in driven:
                self.say(f"joint {made['name']}: its armature is left out, since no actuator drives it.")
        return of_tendons

    def constant(self, number: int) -> str:
        """Effort of an actuator without input, as text."""
        bias = np.array(self.model.actuator_biasprm[number])
        rest = f"constant, {bias[0]:.3g} (N or N m)"
        return rest if not np.any(bias[1:]) else f"{rest}, and more with position and rate"

    def largest_force(self, number: int) -> float:
        model = self.model
        if model.actuator_forcelimited[number]:
            return float(np.abs(model.actuator_forcerange[number]).max()) or 1.0
        gain = abs(float(model.actuator_gainprm[number][0])) or 1.0
        if model.actuator_ctrllimited[number]:
            return gain * float(np.abs(model.actuator_ctrlrange[number]).max()) or 1.0
        self.say("motors without any limit get an effort of 1000 N or N m.")
        return 1000.0

    def add_tendon(self, tendon: int, motor: int | None) -> None:
        model, kinds = self.model, self._mujoco.mjtWrap
        name = self.named("TENDON", tendon, "tendon")
        first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        wraps = range(first, first + count)
        length = float(model.tendon_length0[tendon])
        stretch = length - float(model.tendon_lengthspring[tendon][1])
        if light := self.light_branches(name, wraps, tendon):
            wraps, length = light
        types = [int(model.wrap_type[k]) for k in wraps]
        if int(kinds.mjWRAP_JOINT) in types or int(kinds.mjWRAP_PULLEY) in types:
            what = "runs over joints" if int(kinds.mjWRAP_JOINT) in types else "branches"
            self.say(f"tendon {name} is left out: it {what}, and a routed cable goes from point to point.")
            return
        if beside := self.beside_the_plane(wraps):
            self.say(f"tendon {name} is left out: {beside}")
            return
        route: list[dict[str, Any]] = []
        for k in wraps:
            target, kind = int(model.wrap_objid[k]), int(model.wrap_type[k])
            if kind == int(kinds.mjWRAP_SITE):
                body = int(model.site_bodyid[target])
                at = np.array(model.site_pos[target]) - self._offsets[body]
                route.append({"body": self._body_names[body], "at": at.tolist()})
            elif kind == int(kinds.mjWRAP_CYLINDER):
                route.append(self.pulley(name, tendon, k, target))
            else:
                self.say(f"tendon {name} passes a sphere, which is left out: pulleys are round about an axis.")
        rest = length - stretch
        stiffness = float(np.ravel(model.tendon_stiffness[tendon])[0])
        damping = float(np.ravel(model.tendon_damping[tendon])[0])
        if motor is not None:
            length = rest = self.add_puller(name, route, motor, length)
        if stiffness == 0.0:
            stiffness, rest = INEXTENSIBLE, length
            self.say(f"tendon {name} has no stiffness there and {INEXTENSIBLE:g} N/m here.")
        if float(model.tendon_lengthspring[tendon][0]) > 0.0:
            self.say(f"tendon {name} pushes where it is short there; here it goes slack.")
        if model.tendon_limited[tendon] or model.tendon_frictionloss[tendon]:
            self.say(f"tendon {name}: its limits and frictionloss are left out.")
        if length > (1.0 + LONGEST_STRETCH) * rest:
            self.say(f"tendon {name} is left out: it is a spring that starts at {length / max(rest, 1e-12):.3g} times "
                     f"its rest length, and a cable stretches by {100 * LONGEST_STRETCH:.0f} %.")  # fmt: skip
            return
        area = np.pi * CABLE_RADIUS**2
        made = {
            "name": name, "young": stiffness * rest / area, "cable_radius": CABLE_RADIUS, "length": rest,
            "route": route,
        }  # fmt: skip
        if damping:
            made["damping"] = damping * rest / area
            self.say("dampers of tendons act while they are taut, and never push.")
        self.cables.append(made)
        self.say(f"tendons are cables of radius {CABLE_RADIUS:g} m whose E A is their stiffness times rest length.")

    def light_branches(self, name: str, wraps: range, tendon: int) -> tuple[range, float] | None:
        """Part of a tendon before its branches and the length of this part [m], if all branches have small weights."""
        model, pulley = self.model, int(self._mujoco.mjtWrap.mjWRAP_PULLEY)
        splits = [k for k in wraps if int(model.wrap_type[k]) == pulley]
        divisors = [float(model.wrap_prm[k]) for k in splits]
        if not splits or splits[0] == wraps[0] or min(divisors) * LIGHT_BRANCH < 1.0:
            return None
        data = self._mujoco.MjData(model)
        try:
            model.wrap_prm[splits] = 1e300
            self._mujoco.mj_forward(model, data)
        finally:
            model.wrap_prm[splits] = divisors
        self.say(f"tendon {name}: its branches are left out; they count {1.0 / min(divisors):.2g} of their length.")
        return range(wraps[0], splits[0]), float(data.ten_length[tendon])

    def pulley(self, name: str, tendon: int, wrap: int, geom: int) -> dict[str, Any]:
        """Pulley for a cylinder around which a tendon wraps, on the side of its initial route."""
        model = self.model
        body = int(model.geom_bodyid[geom])
        axes = matrix_from_quaternion(model.geom_quat[geom])
        at = np.array(model.geom_pos[geom]) - self._offsets[body]
        data = self._mujoco.MjData(model)
        self._mujoco.mj_forward(model, data)
        centre, axis = np.array(data.geom_xpos[geom]), np.array(data.geom_xmat[geom]).reshape(3, 3)[:, 2]
        before, after = (self.wrap_position(data, k) for k in (wrap - 1, wrap + 1))
        side_site = int(model.wrap_prm[wrap])
        inside = np.array(data.site_xpos[side_site]) if side_site >= 0 else 0.5 * (before + after)
        # the cable passes the axis on the side of the side site
        arm = inside - centre
        side = 1 if float(np.cross(arm, after - before) @ axis) > 0.0 else -1
        self.say(f"tendon {name}: a cylinder is a pulley without friction, in whose plane the cable must lie.")
        return {
            "body": self._body_names[body], "at": at.tolist(), "axis": axes[:, 2].tolist(),
            "radius": float(model.geom_size[geom][0]), "side": side, "may_be_clear": True,
        }  # fmt: skip

    def beside_the_plane(self, wraps: range) -> str:
        """Sentence if the neighbours of a cylinder are not in one plane normal to its axis; else empty."""
        data = self._mujoco.MjData(self.model)
        self._mujoco.mj_forward(self.model, data)
        for k in wraps:
            if int(self.model.wrap_type[k]) != int(self._mujoco.mjtWrap.mjWRAP_CYLINDER):
                continue
            geom = int(self.model.wrap_objid[k])
            axis = np.array(data.geom_xmat[geom]).reshape(3, 3)[:, 2]
            before, after = (self.wrap_position(data, each) for each in (k - 1, k + 1))
            across, away = abs(float(axis @ (after - before))), float(np.linalg.norm(after - before))
            if across > OFF_PLANE * max(away, float(self.model.geom_size[geom][0])):
                name = self._mujoco.mj_id2name(self.model, self._kinds.mjOBJ_GEOM, geom) or f"number {geom}"
                return (
                    f"it passes cylinder {name} aslant, by {1e3 * across:.3g} mm, and pulleys turn a cable in a plane."
                )
        return ""

    def wrap_position(self, data: Any, wrap: int) -> NDArray[np.float64]:
        target = int(self.model.wrap_objid[wrap])
        is_site = int(self.model.wrap_type[wrap]) == int(self._mujoco.mjtWrap.mjWRAP_SITE)
        return np.array(data.site_xpos[target] if is_site else data.geom_xpos[target])

    def add_puller(self, name: str, route: list[dict[str, Any]], motor: int, length: float) -> float:
        """Add a slider behind the first point of a motor-driven tendon; returns the length of the tendon including
        it."""
        start = dict(route[0])
        slider, joint = self.fresh(f"{name}_slider"), self.fresh(f"{name}_pull")
        reach = max(0.5 * length, 1e-3)
        self.bodies[slider] = {"mass": SLIDER_MASS, "inertia": [1e-9, 1e-9, 1e-9]}
        self.joints.append({
            "name": joint, "kind": "prismatic", "parent": start["body"], "body": slider, "axis": [-1.0, 0.0, 0.0],
            "frame": {"at": [start["at"][0] - reach, *start["at"][1:]]},
        })  # fmt: skip
        route.insert(0, {"body": slider, "at": [0.0, 0.0, 0.0]})
        self.actuators.append({
            "name": self._mujoco.mj_id2name(self.model, self._kinds.mjOBJ_ACTUATOR, motor) or f"{name}_motor",
            "drives": joint, "position": [-0.9 * reach, 10.0 * length], "rate": RATE,
            "effort": self.largest_force(motor),
        })  # fmt: skip
        self.say(f"tendon {name} is pulled by a slider of {1e3 * SLIDER_MASS:g} g behind its first site.")
        return length + reach

    # -- ground, outputs, text -----------------------------------------------------------------------------------------

    def add_ground(self) -> None:
        model = self.model
        bodies = np.array(model.geom_bodyid)
        collides = (np.array(model.geom_contype) != 0) | (np.array(model.geom_conaffinity) != 0)
        still = np.array(model.body_weldid)[bodies] == 0
        planes = np.flatnonzero((np.array(model.geom_type) == PLANE) & still & collides)
        touching = np.flatnonzero(~still & collides)
        if not planes.size or not touching.size:
            return
        if planes.size > 1:
            self.say("of several planes only the first is the ground.")
        plane = int(planes[0])
        normal = matrix_from_quaternion(model.geom_quat[plane])[:, 2]
        if normal[2] <= 0.0 or int(bodies[plane]) != 0:
            self.say("the plane is no ground: it faces down, or stands on a body; it is left out.")
            return
        weight = float(np.sum(model.body_mass) * np.linalg.norm(model.opt.gravity)) or 1.0
        stiffness = weight / SINKING
        self.contact = {
            "stiffness": stiffness, "damping": float(np.sqrt(stiffness * np.sum(model.body_mass))),
            "friction": float(model.geom_friction[plane][0]),
            "height": float(normal @ np.array(model.geom_pos[plane])) / float(normal[2]),
        }  # fmt: skip
        slope = float(np.arccos(min(1.0, normal[2])))
        if slope > 1e-9:
            self.contact |= {"slope": slope, "downhill": float(np.arctan2(normal[1], normal[0]))}
        for geom in touching:
            self.add_part(int(geom), int(bodies[geom]), plane)
        if not self.parts:
            self.contact = None
        self.say(f"the ground is a spring into which the weight sinks by {1e3 * SINKING:g} mm, with a damper; bodies "
                 "do not collide.")  # fmt: skip

    def depth_at_start(self, geom: int, kind: int, size: NDArray[np.float64], plane: int) -> float:
        """Initial depth of a geom below a plane [m], if it is larger than robot files allow; else 0."""
        data = self._mujoco.MjData(self.model)
        self._mujoco.mj_kinematics(self.model, data)
        normal = np.array(data.geom_xmat[plane]).reshape(3, 3)[:, 2]
        axes = np.array(data.geom_xmat[geom]).reshape(3, 3)
        along = np.abs(axes.T @ normal)
        reach = {SPHERE: size[0], CAPSULE: size[0] + size[1] * along[2], BOX: float(size @ along)}[kind]
        depth = float(reach - normal @ (np.array(data.geom_xpos[geom]) - np.array(data.geom_xpos[plane])))
        return depth if depth > DEEPEST else 0.0

    def add_part(self, geom: int, body: int, plane: int) -> None:
        model = self.model
        kind, size = int(model.geom_type[geom]), np.array(model.geom_size[geom])
        sizes = {
            SPHERE: ("sphere", [float(size[0])]), CAPSULE: ("capsule", [float(size[0]), 2.0 * float(size[1])]),
            BOX: ("box", (2.0 * size).tolist()),
        }  # fmt: skip
        if kind not in sizes:
            self.say(f"geoms of kind {GEOM_NAMES.get(kind, 'cylinder')} do not touch the ground.")
            return
        what, numbers = sizes[kind]
        frame = _frame(
            np.array(model.geom_pos[geom]) - self._offsets[body], matrix_from_quaternion(model.geom_quat[geom])
        )
        if depth := self.depth_at_start(geom, kind, size, plane):
            self.say(f"a {what} of body {self._body_names[body]} touches no ground: it starts {depth:.3g} m under it.")
            return
        self.parts.append({
            "name": self.named("GEOM", geom, self._body_names[body]), "body": self._body_names[body], "kind": what,
            "size": numbers, **frame,
        })  # fmt: skip

    def add_outputs(self) -> None:
        """Add the output: the last site on a moving body, or else the last body."""
        model = self.model
        sites = [k for k in range(model.nsite) if int(model.site_bodyid[k]) > 0]
        if sites:
            body = int(model.site_bodyid[sites[-1]])
            at, axes = self.site_frame(sites[-1])
            frame = _frame(at - self._offsets[body], axes)
            name = self.named("SITE", sites[-1], "output")
        else:
            body, frame, name = model.nbody - 1, {}, "output"
        self.outputs.append({"name": name, "body": self._body_names[body], **({"frame": frame} if frame else {})})

    def text(self) -> str:
        lines = [
            f"# {self.name}: a mechanism from {self.source}, as MuJoCo compiled it. SI units: m, kg, N, rad.",
            "# What is said otherwise than there:",
            *(f"#   {each}" for each in self.differences),
            "kind: mechanism",
            f"name: {self.name}",
            f"gravity: {_flow(np.array(self.model.opt.gravity).tolist())}",
            "bodies:",
            *(f"  {name}: {_flow(block)}" for name, block in self.bodies.items()),
        ]
        lists: dict[str, Iterable[dict[str, Any]]] = {
            "joints": self.joints, "loops": self.loops, "routed_cables": self.cables, "actuators": self.actuators,
            "outputs": self.outputs, "contact_parts": self.parts,
        }  # fmt: skip
        for field, items in lists.items():
            if items:
                lines += [f"{field}:", *(f"  - {_flow(item)}" for item in items)]
        if self.contact is not None:
            lines.append(f"contact: {_flow(self.contact)}")
        return "\n".join(lines) + "\n"


def _frame(origin: NDArray[np.float64], axes: NDArray[np.float64]) -> dict[str, Any]:
    """Block of a frame, without zero fields."""
    made: dict[str, Any] = {}
    if np.any(origin):
        made["at"] = np.asarray(origin).tolist()
    turn = rotation_vector(axes)
    if np.any(turn):
        made["turn"] = turn.tolist()
    return made


def _flow(value: Any) -> str:
    """Value as YAML on one line; numbers with full precision."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value + 0.0) if isinstance(value, float) else str(value)
