"""Constraints that a cell must keep, goals that rank the cells that do, and the verdict on both."""

from ethosu_sdk.sweep.goals.reading import TABLES, Constraint, Goal, Goals, parse
from ethosu_sdk.sweep.goals.standings import judge
from ethosu_sdk.sweep.goals.verdict import Verdict

__all__ = ["TABLES", "Constraint", "Goal", "Goals", "Verdict", "judge", "parse"]
