"""Move a platform to a goal pose: plan the rest lengths, walk there in time, and see what out of reach means.

Run: python examples/goal_pose.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

from tensegrity_control import inverse_kinematics, make_controller
from tensegrity_dynamics import UnreachableGoalError, forward_kinematics, load_robot


def main() -> None:
    robot = load_robot("tensebot")
    home = forward_kinematics(robot, rigid_bars=True)
    position, _ = home.pose
    print(f"at rest the platform is at {np.round(1e3 * position, 2)} mm")

    goal = position + [0.015, 0.010, 0.010]
    plan = inverse_kinematics(robot, goal, start=home, rigid_bars=True)
    print(f"goal {np.round(1e3 * goal, 2)} mm: {plan.iterations} steps over {len(plan.path)} equilibria,")
    print(f"  error {np.abs(plan.pose_error).max():.1e} m, lowest tension margin {plan.lowest_margin[1]:.1f} N")
    for name, length in plan.rest_lengths.items():
        print(f"  {name:9s} {1e3 * length:7.2f} mm")

    controller = make_controller("tendon_length", robot)
    controller.reset(0.0)
    answer = controller.set_goal(0.0, goal)
    times = np.linspace(0.0, answer.arrival, 200)
    lengths = np.array([controller.command(time).values for time in times])
    rate = np.abs(np.diff(lengths, axis=0)).max() / (times[1] - times[0])
    print(f"walked in {answer.duration:.2f} s, fastest tendon {1e3 * rate:.1f} mm/s")

    try:
        inverse_kinematics(robot, position + [0.0, 0.0, 0.2], start=home, rigid_bars=True)
    except UnreachableGoalError as error:
        print(f"20 cm higher: {error}")

    if len(sys.argv) > 1:
        draw(times, lengths, [actuator.name for actuator in robot.actuators], sys.argv[1])


def draw(times: np.ndarray, lengths: np.ndarray, names: list[str], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for column, name in zip(1e3 * lengths.T, names, strict=True):
        axes.plot(times, column, label=name)
    axes.set(xlabel="time [s]", ylabel="rest length [mm]")
    axes.legend(ncols=2, fontsize="small")
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
