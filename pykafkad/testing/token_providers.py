"""Token providers of kafka-python and aiokafka for OAUTHBEARER: both get their tokens at a token end point, as
`pykafkad serve --oauth` has one (RFC 6749, section 4.4)."""

from __future__ import annotations

from typing import Any

from pykafkad.cli.token_source import TokenSource


def kafka_python(url: str, client: str, secret: str, scope: str | None = None) -> Any:
    """The value of kafka-python's `sasl_oauth_token_provider`."""
    from pykafkad.cli.token_login import provider

    return provider(TokenSource(url, client, secret, scope).token)


def aiokafka(url: str, client: str, secret: str, scope: str | None = None) -> Any:
    """The value of aiokafka's `sasl_oauth_token_provider`."""
    import asyncio

    from aiokafka.abc import AbstractTokenProvider

    source = TokenSource(url, client, secret, scope)

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        """As aiokafka wants it."""

        async def token(self) -> str:
            return await asyncio.get_running_loop().run_in_executor(None, source.token)

    return Provider()
