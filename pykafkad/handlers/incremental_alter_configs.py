"""IncrementalAlterConfigs, versions 0 and 1.

Changes single settings: set (0), delete (1), append to (2) or subtract from (3) a list. Settings that are not named
stay. The rest is as in AlterConfigs. Broker loggers can be changed with it too; their levels hold until the broker
stops.

Gaps: there is one broker logger, `root`, where Kafka has one per Java class.
"""

from __future__ import annotations

from pykafkad.handlers.alter_configs import alter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext
    from pykafkad.wire import messages


def handle(ctx: Context | ControllerContext, request: messages.IncrementalAlterConfigsRequest) -> object:
    """Submits the valid changes to the controller."""
    return alter(ctx, request, incremental=True)
