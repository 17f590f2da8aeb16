"""Errors of the registry, with Confluent's codes."""

from __future__ import annotations


class RegistryError(Exception):
    """A request that is refused. `code` is Confluent's, whose first three digits are the status of the answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(str(self.code)[:3])

    def as_json(self) -> dict[str, object]:
        """The body of the answer."""
        return {"error_code": self.code, "message": str(self)}


def subject_not_found(subject: str) -> RegistryError:
    """No subject of that name has a version."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    """The subject has no such version."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | None = None) -> RegistryError:
    """No schema has that id, or the subject has no such schema."""
    return RegistryError(40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """The subject was deleted already."""
    return RegistryError(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """The subject must be deleted before it is permanently."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """The version was deleted already."""
    text = f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(40406, text)


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """The version must be deleted before it is permanently."""
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryError(40407, text)


def compatibility_not_configured(subject: str) -> RegistryError:
    """The subject has no level of its own."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_configured(subject: str) -> RegistryError:
    """The subject has no mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: list[str]) -> RegistryError:
    """A schema that the level of its subject does not allow."""
    text = f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: {details}'
    return RegistryError(40901, text)


def invalid_schema(text: str) -> RegistryError:
    """What was given is no schema, or refers to what is not there."""
    return RegistryError(42201, text)


def invalid_version(version: str) -> RegistryError:
    """A version that no subject can have."""
    text = (
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] "
        'and the string "latest"'
    )
    return RegistryError(42202, text)


def operation_not_permitted(text: str) -> RegistryError:
    """The mode does not allow it."""
    return RegistryError(42205, text)


def reference_exists(subject: str, version: int) -> RegistryError:
    """Another schema refers to the version."""
    text = f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}."
    return RegistryError(42206, text)
