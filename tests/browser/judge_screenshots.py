"""Takes the screenshot of `sightline judge` for docs/images/page/, with the sample photos.

    .venv/bin/python tests/browser/judge_screenshots.py

People's captions are the samples' descriptions, the machine's those of the model that ships.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from screenshots import DESKTOP, PHONE, save
from serving import ARGUMENTS, address_once_ready, chromium

import sightline
from sightline.samples import FOLDER, samples


def write_data(folder):
    model = sightline.load("coco")
    rows, captions = [], []
    for each in samples():
        path = FOLDER / each.name
        rows.append({"id": each.name, "image": str(path), "targets": [each.alt], "split": "test"})
        captions.append({"image_id": each.name, "caption": str(model.describe(path).text)})
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "coco.json").write_text(json.dumps(captions))


def take(browser, address, name, option, **context):
    page = browser.new_context(reduced_motion="reduce", **context).new_page()
    page.goto(f"{address}?judge={name}")
    page.wait_for_selector("#question:not([hidden])")
    while page.locator(f"[data-answer={option}]").count() == 0:
        counted = page.inner_text("#counted")
        page.keyboard.press("1")
        while page.inner_text("#counted") == counted:
            page.wait_for_timeout(50)
    page.wait_for_timeout(500)
    return page


def main():
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_data(folder)
        command = [sys.executable, "-m", "sightline.cli", "judge", "coco.json"]
        options = ["--data=data.jsonl", "--port=0"]
        with (folder / "log").open("w") as out:
            process = subprocess.Popen(
                [*command, *options], cwd=folder, env=os.environ, stdout=out, stderr=out
            )
        try:
            address = address_once_ready(process, folder / "log", path="")
            browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
            save(
                take(browser, address, "anna", "equal", viewport={**DESKTOP, "height": 480}),
                "judge",
            )
            phone = {"viewport": PHONE, "color_scheme": "dark", "has_touch": True}
            save(take(browser, address, "ben", "machine", **phone), "judge-phone-dark")
            browser.close()
        finally:
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    main()
