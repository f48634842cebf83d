"""An arm of two links on routed tendons; a spring pulls its elbow against one of them."""

from __future__ import annotations

ELBOW = """
kind: mechanism
name: elbow
gravity: [0, 0, -9.81]
parameters: {L: "30 cm"}
bodies:
  upper: {shapes: [{kind: tube, size: ["30 mm", "26 mm", L], density: 2700, frame: {at: [0, 0, L/2]}}]}
  lower: {shapes: [{kind: tube, size: ["25 mm", "22 mm", L], density: 2700, frame: {at: [0, 0, L/2]}}]}
  drum_1: {shapes: [{kind: cylinder, size: ["20 mm", "10 mm"], mass: "50 g"}]}
  drum_2: {shapes: [{kind: cylinder, size: ["20 mm", "10 mm"], mass: "50 g"}]}
  drum_3: {shapes: [{kind: cylinder, size: ["20 mm", "10 mm"], mass: "50 g"}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: ["5 deg"],
     resistance: {damping: 0.02}}
  - {name: elbow, kind: revolute, parent: upper, body: lower, axis: [0, 1, 0], frame: {at: [0, 0, L]},
     start: ["10 deg"], resistance: {damping: 0.02}}
  - {name: d1, kind: revolute, parent: world, body: drum_1, axis: [0, 1, 0], frame: {at: ["-20 cm", 0, "-10 cm"]}}
  - {name: d2, kind: revolute, parent: world, body: drum_2, axis: [0, 1, 0], frame: {at: ["20 cm", 0, "-10 cm"]}}
  - {name: d3, kind: revolute, parent: upper, body: drum_3, axis: [0, 1, 0], frame: {at: ["-6 cm", 0, "5 cm"]}}
routed_cables:
  - {name: back, young: "5 GPa", cable_radius: "0.5 mm", damping: "10 MPa s", tension: "40 N",
     route: [{joint: d1, radius: "20 mm", side: 1}, {body: upper, at: ["-2 cm", 0, "25 cm"]}]}
  - {name: front, young: "5 GPa", cable_radius: "0.5 mm", damping: "10 MPa s", tension: "40 N",
     route: [{joint: d2, radius: "20 mm", side: -1}, {body: upper, at: ["2 cm", 0, "25 cm"]}]}
  - {name: bend, young: "5 GPa", cable_radius: "0.5 mm", damping: "10 MPa s", tension: "30 N",
     route: [{joint: d3, radius: "20 mm", side: 1}, {body: lower, at: ["-3 cm", 0, "10 cm"]}]}
  - {name: spring, young: "20 MPa", cable_radius: "2 mm", damping: "0.1 MPa s", tension: "25 N",
     route: [{body: upper, at: ["3 cm", 0, "10 cm"]}, {body: lower, at: ["3 cm", 0, "10 cm"]}]}
actuators:
  - {drives: d1, position: ["-10 rad", "10 rad"], rate: "10 rad/s", effort: "5 N m", minimum_tension: "5 N"}
  - {drives: d2, position: ["-10 rad", "10 rad"], rate: "10 rad/s", effort: "5 N m", minimum_tension: "5 N"}
  - {drives: d3, position: ["-10 rad", "10 rad"], rate: "10 rad/s", effort: "5 N m", minimum_tension: "5 N"}
outputs: [{name: hand, body: lower, frame: {at: [0, 0, L]}, controlled: [x, z]}]
"""
"""At 2 cm aside two thirds of the stiffness that it has at its start are gone, at 2.6 cm it folds."""
