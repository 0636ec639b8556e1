"""All routes, once, for every door; an audio route answers with a plan."""

from tenuto.web.app import WebOptions, create_app
from tenuto.web.chunking import FRAME_OVERHEAD
from tenuto.web.delivery import Delivery, DeliveryState
from tenuto.web.plan import PLAN, Plan

__all__ = [
    "FRAME_OVERHEAD",
    "PLAN",
    "Delivery",
    "DeliveryState",
    "Plan",
    "WebOptions",
    "create_app",
]
