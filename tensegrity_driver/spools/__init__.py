"""Spools: conversion of servo readings to tendon lengths, and the position loops."""
