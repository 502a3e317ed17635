"""Constraints that a cell must keep, goals that rank the cells that do, and the verdict on both."""

from ethosu_sdk.sweep.goals.reading import Constraint, ConstraintTables, Goal, Goals, GoalTables, parse
from ethosu_sdk.sweep.goals.standings import judge
from ethosu_sdk.sweep.goals.verdict import Verdict

__all__ = ["Constraint", "ConstraintTables", "Goal", "GoalTables", "Goals", "Verdict", "judge", "parse"]
