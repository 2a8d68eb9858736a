"""Distances between points."""

from .pairwise import pairwise_distances

__all__ = ["pairwise_distances"]
