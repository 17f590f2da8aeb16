"""ApiVersions, versions 0 to 4, with Kafka 4.4 to 5.

Lists every advertised API with its range of versions, and the features. The response always has response header 0. A
version above the supported ones is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
(`unsupported`). From version 3 (KIP-511) a client names its software; names outside Kafka's pattern are
INVALID_REQUEST. From version 4 supported features with minimum 0 are listed too (KIP-1022). The APIs of client metrics
(KIP-714) are listed with `pykafkad.client.telemetry.enable`. From version 5 a client may name the cluster and the node
that it means to reach; another one answers REBOOTSTRAP_REQUIRED (KIP-1242). Of the APIs that are forwarded to a
controller in another process those versions are listed that the controller has too.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.metadata import features
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_TELEMETRY_KEYS = (71, 72)
_NONE = (0, -1)
"""The range of no version."""
_INNER = _LETTERS | frozenset("-.")


def handle(ctx: Context, request: messages.ApiVersionsRequest) -> object:
    """The advertised APIs; INVALID_REQUEST for an invalid client software name or version, or for half a broker;
    REBOOTSTRAP_REQUIRED for a client that means another broker."""
    if ctx.version >= 3 and not (
        _well_formed(request.client_software_name) and _well_formed(request.client_software_version)
    ):
        return messages.ApiVersionsResponse(error_code=errors.INVALID_REQUEST)
    if (request.cluster_id is None) != (request.node_id == -1):
        return messages.ApiVersionsResponse(error_code=errors.INVALID_REQUEST)
    if request.cluster_id is not None and (request.cluster_id, request.node_id) != (ctx.cluster_id, ctx.node_id):
        return messages.ApiVersionsResponse(error_code=errors.REBOOTSTRAP_REQUIRED)
    if ctx.version >= 3:
        ctx.set_client_software(request.client_software_name, request.client_software_version)
    if ctx.login is not None:
        ctx.login.versions_told(ctx.connection)
    image = ctx.metadata
    supported = features.supported(ctx.settings)
    release = ctx.settings.release
    if release is not None and release.hidden:
        supported = {name: levels for name, levels in supported.items() if name not in release.hidden}
    return messages.ApiVersionsResponse(
        api_keys=_keys(ctx),
        supported_features=[
            messages.ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in supported.items()
            if low > 0 or ctx.version >= 4
        ],
        finalized_features_epoch=image.features_epoch(),
        finalized_features=[
            messages.ApiVersionsResponse.FinalizedFeatureKey(
                name=name, min_version_level=level, max_version_level=level
            )
            for name, level in image.finalized_features().items()
            if level > 0 and name in supported
        ],
    )


def unsupported(row: table.Api) -> object:
    """The answer to an unsupported version: a response of version 0 with the range of this API alone."""
    return messages.ApiVersionsResponse(
        error_code=errors.UNSUPPORTED_VERSION,
        api_keys=[
            messages.ApiVersionsResponse.ApiVersion(
                api_key=row.key, min_version=row.min_version, max_version=row.max_version
            )
        ],
    )


def _keys(ctx: Context) -> list[messages.ApiVersionsResponse.ApiVersion]:
    answer = messages.ApiVersionsResponse.ApiVersion
    listener = table.CONTROLLER_LISTENER if ctx.on_controller else table.BROKER_LISTENER
    theirs = None if ctx.on_controller else ctx.controller.api_ranges
    rows = []
    for row in table.answered_on(listener, ctx.settings.release):
        if row.advertised_min is None:
            continue
        low, high = row.advertised_min, row.max_version
        if theirs is not None and row.is_forwarded:
            least, newest = theirs.get(row.key, _NONE)
            low, high = max(low, least), min(high, newest)
        if low <= high:
            rows.append(answer(api_key=row.key, min_version=low, max_version=high))
    if ctx.settings.pykafkad_client_telemetry_enable and not ctx.on_controller:
        rows += [
            answer(api_key=row.key, min_version=row.min_version, max_version=row.max_version)
            for row in table.ROWS
            if row.key in _TELEMETRY_KEYS
        ]
    return rows


def _well_formed(text: str) -> bool:
    """Whether a text consists of letters, digits, dots and dashes, and begins and ends with a letter or digit."""
    return bool(text) and text[0] in _LETTERS and text[-1] in _LETTERS and all(each in _INNER for each in text)
