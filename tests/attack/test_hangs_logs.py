"""The service's log: a stderr that nobody reads, and asyncio's flood when files run out."""

from __future__ import annotations

import logging
import os

import pytest

from sightline.serve import logs


@pytest.mark.timeout(20)
def test_a_stderr_that_nobody_reads_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(logs.sys, "stderr", stream)
        before = {name: logging.getLogger(name).handlers for name in ("uvicorn", "asyncio")}
        logs.configure()
        for _ in range(2000):
            logs.logger.info("request", extra={"fields": {"x": "y" * 100}})
        logs.logger.handlers = []
        for name, handlers in before.items():
            logging.getLogger(name).handlers = handlers
        assert 50_000 < len(os.read(reading, 1_000_000)) <= 65_536
        os.close(reading)


def test_the_same_message_is_seldom() -> None:
    seldom = logs.Seldom()
    one, two = (logging.makeLogRecord({"msg": message}) for message in ("accept", "other"))
    assert [seldom.filter(one), seldom.filter(one), seldom.filter(two)] == [True, False, True]
