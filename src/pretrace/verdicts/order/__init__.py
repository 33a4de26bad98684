"""The order test: a set that was published in random order is likelier to its readers in that order."""

from pretrace.verdicts.order.order import order
from pretrace.verdicts.order.settings import OrderSettings

__all__ = ["OrderSettings", "order"]
