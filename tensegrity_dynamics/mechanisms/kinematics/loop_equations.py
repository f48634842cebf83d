"""Loop constraints on the velocity coordinates: K v = 0 and K a = k (000, 1.2.27).

k = -T' (a_s^vp - a_p^vp) - T.' (v_s - v_p); the printed equation 1.2.27 omits the velocity-product accelerations.

"""

from __future__ import annotations

from ...numerics.compilation import allocation_free, inlined_part
from ..loop_joints import ALONG, ROUTED
from ..spatial import cross
from .body_kinematics import last_dof, world_direction, world_point


@inlined_part
def loop_gap(flat, r, work):
    """Fill the successor point (3,) [m] of row r, its gap (3,) [m] to the predecessor point, and its speed."""
    p, s = flat.row_predecessor[r], flat.row_successor[r]
    point, gap, speed = work.point, work.gap, work.speed
    world_point(work.rotation, work.position, s, flat.row_successor_origin[r], point)
    world_point(work.rotation, work.position, p, flat.row_predecessor_origin[r], gap)
    for k in range(3):
        gap[k] = point[k] - gap[k]
        speed[k] = 0.0
    if s >= 0:
        cross(work.velocity[s], point, speed)
        for k in range(3):
            speed[k] += work.velocity[s, 3 + k]


@inlined_part
def same_ends(flat, r):
    """Whether row r and the previous row use the same points of the same bodies, like rows of one loop."""
    if r == 0 or flat.row_kind[r - 1] != ALONG:
        return False
    if flat.row_predecessor[r] != flat.row_predecessor[r - 1] or flat.row_successor[r] != flat.row_successor[r - 1]:
        return False
    for k in range(3):
        if flat.row_predecessor_origin[r, k] != flat.row_predecessor_origin[r - 1, k]:
            return False
        if flat.row_successor_origin[r, k] != flat.row_successor_origin[r - 1, k]:
            return False
    return True


@allocation_free
def loop_equations(flat, work):
    """Fill K, k and the loop errors from the last `body_kinematics`; entries of K outside the chains stay zero."""
    first, second, three, direction, change = work.first, work.second, work.three, work.direction, work.change
    for r in range(flat.row_kind.shape[0]):
        if flat.row_kind[r] == ROUTED:  # already filled by `body_kinematics`
            continue
        p, s = flat.row_predecessor[r], flat.row_successor[r]
        world_direction(work.rotation, p, flat.row_first[r], first)
        for k in range(6):
            change[k] = 0.0
        if p >= 0:
            cross(work.velocity[p], first, three)
        else:
            three[0] = three[1] = three[2] = 0.0
        if flat.row_kind[r] == ALONG:
            if not same_ends(flat, r):
                loop_gap(flat, r, work)
            work.loop_error[r] = 0.0
            for k in range(3):
                work.loop_error[r] += first[k] * work.gap[k]
                direction[3 + k] = first[k]
                # n rotates with the predecessor, the point moves with the successor
                change[3 + k] = three[k]
            cross(work.point, first, direction)
            cross(work.point, three, change)
            cross(work.speed, first, three)
            for k in range(3):
                change[k] += three[k]
        else:
            world_direction(work.rotation, s, flat.row_second[r], second)
            work.loop_error[r] = -(first[0] * second[0] + first[1] * second[1] + first[2] * second[2])
            direction[3] = direction[4] = direction[5] = 0.0
            cross(first, second, direction)
            cross(three, second, change)
            if s >= 0:
                cross(work.velocity[s], second, three)
                cross(first, three, three)
                for k in range(3):
                    change[k] += three[k]
        for end in range(2):
            d = last_dof(flat, s if end == 0 else p)
            while d >= 0:
                work.loop[r, d] = 0.0
                d = flat.dof_parent[d]
        bias = 0.0
        for end in range(2):
            body = s if end == 0 else p
            sign = 1.0 if end == 0 else -1.0
            if body < 0:
                for k in range(3):
                    bias += sign * direction[3 + k] * flat.gravity[k]
                continue
            for k in range(6):
                bias -= sign * (direction[k] * work.acceleration[body, k] + change[k] * work.velocity[body, k])
            d = last_dof(flat, body)
            while d >= 0:
                total = 0.0
                for k in range(6):
                    total += direction[k] * work.jacobian[d, k]
                work.loop[r, d] += sign * total
                d = flat.dof_parent[d]
        work.loop_bias[r] = bias
