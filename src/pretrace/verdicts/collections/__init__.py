"""A collection ranked among others of its kind: exact where all of them are exchangeable."""

from pretrace.verdicts.collections.gathering import divided
from pretrace.verdicts.collections.settings import CollectionSettings
from pretrace.verdicts.collections.verdict import Company, collections

__all__ = ["CollectionSettings", "Company", "collections", "divided"]
