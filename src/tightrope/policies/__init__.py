"""Policies by what the user names: a table in a file, or an object in a module."""

from tightrope.policies.load import load_object, load_policy

__all__ = ["load_object", "load_policy"]
