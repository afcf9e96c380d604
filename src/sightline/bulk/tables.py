"""Parquet tables of inputs, read a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from sightline.errors import DataError

ROWS = 64  # read together: rows may be pictures


@dataclass(frozen=True)
class Column:
    """Where a table's inputs are."""

    name: str
    rows: int


def column_of(file: BinaryIO, place: str, takes: Literal["file", "text"], name: str) -> Column:
    """The column that is named, or the only one that can be meant."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise ValueError(f"no Parquet file: {error}") from None
    schema = table.schema_arrow
    if name:
        if name not in schema.names:
            has = ", ".join(schema.names)
            raise DataError(f"{place} has no column {name!r}; it has {has}")
        return Column(name, table.metadata.num_rows)
    fit = [field.name for field in schema if _is_text(field.type)]
    if takes == "file":
        fit = [field.name for field in schema if _is_bytes(field.type)] or fit
    if len(fit) != 1:
        has = ", ".join(fit) or "none that fits"
        raise DataError(f"{place}: name the inputs' column with --column; there is {has}")
    return Column(fit[0], table.metadata.num_rows)


def rows_of(file: BinaryIO, column: Column) -> Iterator[str | bytes | None]:
    from pyarrow import parquet

    file.seek(0)
    for batch in parquet.ParquetFile(file).iter_batches(ROWS, columns=[column.name]):
        for value in batch.column(0).to_pylist():
            yield value.get("bytes") or value.get("path") if isinstance(value, dict) else value


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: Any) -> bool:
    """Also as Hugging Face's data sets have them: a struct of bytes and a path."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return any(field.name == "bytes" and _is_bytes(field.type) for field in kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
