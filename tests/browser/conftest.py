"""A real Chromium, and a real server with small models, trained here."""

import os
from functools import partial
from importlib.util import find_spec

import pytest
from serving import ARGUMENTS, chromium, serving


def no_browser(reason):
    """Where a browser is required its absence is a failure."""
    if os.environ.get("SIGHTLINE_REQUIRE_BROWSER"):
        pytest.fail(f"SIGHTLINE_REQUIRE_BROWSER is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def a_browser_is_there():
    if find_spec("playwright") is None:
        no_browser("playwright is not installed (pip install -e '.[dev]')")
    if chromium() is None:
        no_browser("there is no chromium (.ci/browser installs it)")


@pytest.fixture(scope="module")  # its event loop would be in the way of other tests' own
def browser(a_browser_is_there):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def models(a_browser_is_there, shapes):
    """Folders of a soft and a hard captioner of shapes, and of a translator of a toy language."""
    from small import train_others

    from sightline.runtime.confidence import FEATURES, Confidence
    from sightline.runtime.model_folder import find_model

    folder, recipe, _ = shapes
    found = train_others(folder, recipe)
    sure = Confidence(-1.0, dict(zip(FEATURES, (1.0, 1.0, 1.0, 0.0), strict=True)))
    sure.save(find_model(found["shapes"]), {})
    return found


@pytest.fixture(scope="session")
def captioner(models):
    """The soft captioner in Python: what the page should show."""
    import sightline

    return sightline.load(models["shapes"])


@pytest.fixture(scope="session")
def server(models, cli_environment, tmp_path_factory):
    """The address of `sightline serve` with the small models."""
    log = tmp_path_factory.mktemp("serve") / "log"
    with serving(models, cli_environment, log) as address:
        yield address


@pytest.fixture
def open_at(browser):
    """`open_at(address, **context options)`: a page without errors and outside requests."""
    contexts, complaints = [], []

    def opened(address, **options):
        options = {"reduced_motion": "reduce", "viewport": {"width": 1280, "height": 900}} | options
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(60_000)  # a busy machine is no failure
        page = context.new_page()
        origin = address[: address.index("/", len("https://")) + 1]
        own = (origin, f"blob:{origin}", "data:")
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: line.type == "error" and complaints.append(line.text))
        page.on("request", lambda sent: sent.url.startswith(own) or complaints.append(sent.url))
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    # The console also reports refused requests; what the page makes of them has its own tests
    assert [text for text in complaints if "Failed to load resource" not in text] == []


@pytest.fixture
def open_page(server, open_at):
    """`open_page(**context options)`: the page of the server of small models."""
    return partial(open_at, server)


@pytest.fixture
def page(open_page):
    return open_page()
