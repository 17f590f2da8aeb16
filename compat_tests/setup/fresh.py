"""A fresh start: removes everything that earlier runs downloaded or built, as on a machine that never ran the tests."""

from __future__ import annotations

import docker

from compat_tests.setup import cache
from compat_tests.setup.container_engine import end_own_engine
from compat_tests.setup.kafka_image import BUILT_IMAGE, PUBLIC_IMAGE


def start_fresh() -> list[str]:
    """Empty the cache and remove the images of Kafka; returns one sentence for each thing that could not be removed.

    Packages of the operating system stay, and so do the caches of pip, Maven, Go, Cargo and npm, because they are not
    ours. CacheInUse while another run uses the engine in the cache.
    """
    end_own_engine()
    cache.empty()
    print(f"set-up: {cache.cache_directory()} is empty", flush=True)
    return _remove_images()


def _remove_images() -> list[str]:
    """Remove the images from an engine that the machine already had; our own engine's images were in the cache."""
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except (docker.errors.DockerException, OSError):
        return []
    left = []
    for image in (PUBLIC_IMAGE, BUILT_IMAGE):
        try:
            client.images.remove(image)
            print(f"set-up: the image {image} is removed", flush=True)
        except docker.errors.ImageNotFound:
            continue
        except docker.errors.APIError as error:
            left.append(f"the image {image} could not be removed: {error.explanation}")
    client.close()
    return left
