"""Alembic's entry. `aftercheck_worker.storage.migrate` passes an open connection; the alembic command a URL."""

from __future__ import annotations

import os
import re

import sqlalchemy
from alembic import context

from aftercheck_worker.storage import tables

_CHILD = re.compile(r"_p(\d{8}|default)$")


def include_name(
    name: str | None,
    kind: str,
    _parents: object,
) -> bool:
    """Leave out the partitions: they are made by the day, not by a revision."""
    return kind != "table" or name is None or _CHILD.search(name) is None


def run(connection: sqlalchemy.Connection) -> None:
    """Run the asked command inside one transaction."""
    context.configure(
        connection=connection,
        target_metadata=tables.metadata,
        include_name=include_name,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given: sqlalchemy.Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    engine = sqlalchemy.create_engine(os.environ["DATABASE_URL"], poolclass=sqlalchemy.NullPool)
    with engine.begin() as opened:
        run(opened)
