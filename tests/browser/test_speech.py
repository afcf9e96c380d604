"""The panel for speech, with the model that ships."""

import pytest
from serving import serving

import sightline
from sightline.samples import FOLDER

pytest.importorskip("kaldi_native_fbank", reason="sound needs the extra [audio]")


@pytest.fixture(scope="module")
def address(a_browser_is_there, cli_environment, tmp_path_factory):
    log = tmp_path_factory.mktemp("serve") / "log"
    with serving({"phones": "phones"}, cli_environment, log) as address:
        yield address


def test_the_example_is_heard_as_the_command_hears_it(open_at, address):
    page = open_at(address)
    page.click("#speech-example")
    page.wait_for_selector("#heard:not([hidden]) #phones button")
    page.wait_for_selector("#speech-json:visible")
    expected = sightline.load("phones").describe(FOLDER / "hello.flac").tokens
    heard = page.locator("#phones button").all_inner_texts()
    agreeing = sum(a == b for a, b in zip(heard, expected, strict=False))
    assert agreeing >= 0.8 * len(expected)  # the browser's own resampling changes a few


def test_the_page_says_what_the_model_cannot_do(open_at, address):
    page = open_at(address)
    page.click("#speech-about summary")
    assert "flite" in page.locator("#speech-about").inner_text()
