"""A planar arm of two links on six cables, two of them over both joints: four self-stresses."""

from __future__ import annotations

PLANAR_ARM = """
kind: mechanism
name: planar_arm
gravity: [0, 0, -9.81]
density: 1000
bodies:
  upper: {shapes: [{kind: box, size: [0.04, 0.04, 0.4], mass: 8, frame: {at: [0, 0, 0.2]}}]}
  fore: {shapes: [{kind: box, size: [0.03, 0.03, 0.35], mass: 5, frame: {at: [0, 0, 0.175]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: ["-10 deg"]}
  - {name: elbow, kind: revolute, parent: upper, body: fore, axis: [0, 1, 0], frame: {at: [0, 0, 0.4]},
     start: ["30 deg"]}
defaults:
  cables: {block_axis: [0, 0, 1], pulley_radius: 0.04, young: "4 GPa", damping: "4 MPa s",
    cable_radius: "1 mm", length: 3, strain: 0.03, block: [{kind: cube, size: [0.03]}],
    pulley: [{kind: cylinder, size: [0.04, 0.01], density: 2700}]}
  actuators: {position: [-20, 20], rate: "10 rad/s", effort: "40 N m", minimum_tension: 30}
cables:
  - {name: sf, body: world, at: [0.3, 0, 0.0], pulley_axis: [0, 1, 0],
     anchor: {body: upper, at: [0, 0, 0.35]}}
  - {name: sb, body: world, at: [-0.3, 0, 0.0], pulley_axis: [0, -1, 0],
     anchor: {body: upper, at: [0, 0, 0.35]}}
  - {name: ef, body: upper, at: [0.12, 0, 0.1], pulley_axis: [0, 1, 0],
     anchor: {body: fore, at: [0.05, 0, 0.2]}}
  - {name: eb, body: upper, at: [-0.15, 0, 0.2], pulley_axis: [0, -1, 0],
     anchor: {body: fore, at: [-0.05, 0, 0.12]}}
  - {name: bf, body: world, at: [0.5, 0, 0.1], pulley_axis: [0, 1, 0],
     anchor: {body: fore, at: [0.02, 0, 0.33]}}
  - {name: bb, body: world, at: [-0.5, 0, 0.1], pulley_axis: [0, -1, 0],
     anchor: {body: fore, at: [-0.02, 0, 0.33]}}
actuators: [{drives: sf}, {drives: sb}, {drives: ef}, {drives: eb}, {drives: bf}, {drives: bb}]
outputs: [{name: hand, body: fore, frame: {at: [0, 0, 0.35]}, controlled: [x, z]}]
"""
"""Tensions on a straight path of its hand reach their floors and leave them again."""
