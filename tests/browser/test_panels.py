"""The page knows no task: it shows the panels of the tasks that are served."""

from dataclasses import replace

import pytest
from tests.serve.live_server import running

import sightline
from sightline import tasks
from sightline.serve.models import Models, ServedModel, load_models
from sightline.tasks.route import route_of

PANEL = """
import { make } from '../../dom.js';
export const title = 'Echo';
export function mount(section, page) {
  section.querySelector('#echo').addEventListener('click', async () => {
    const { signal } = new AbortController();
    let steps = 0;
    const onStep = () => steps++;
    const fields = { text: 'A dog runs.' };
    const answer = await page.describe(page.models[0], fields, { signal, onStep });
    section.append(make('output', {}, `${answer.text} in ${steps} steps`));
    page.show();
  });
}
"""


@pytest.fixture
def new_task(tmp_path):
    """A task that is registered from outside, with a panel of its own."""
    (tmp_path / "panel.html").write_text('<button id="echo">Echo</button>\n')
    (tmp_path / "panel.js").write_text(PANEL)
    spec = replace(tasks.spec_of("translate"), name="echo", route=None, panel=tmp_path)
    tasks.register(spec)
    yield spec
    tasks.unregister(spec.name)


@pytest.fixture
def no_panel():
    """A task that is registered from outside, without one."""
    spec = replace(tasks.spec_of("translate"), name="silent", route=None, panel=None)
    tasks.register(spec)
    yield spec
    tasks.unregister(spec.name)


def test_a_new_task_brings_its_panel(open_at, new_task):
    translator = sightline.load("en-de")
    both = [translator, replace(translator, task=new_task.name)]
    served = [ServedModel(m.task, m, route_of(tasks.spec_of(m.task), "text")) for m in both]
    with running(Models({model.name: model for model in served})) as server:
        page = open_at(f"{server.url}/")
        assert page.locator("[role=tab]").all_inner_texts() == ["Translation", "Echo"]
        assert page.locator("#source").is_visible()
        page.locator("#tab-translate").focus()
        for shown in ("#echo", "#source", "#echo"):  # the arrow keys go round
            page.keyboard.press("ArrowLeft")
            assert page.locator(shown).is_visible()
        assert not page.locator("#source").is_visible()
        page.click("#echo")
        text = page.locator("output").inner_text()
        expected = translator.describe("A dog runs.")
        assert text.startswith(f"{expected.text} in ")
        assert int(text.split()[-2]) >= len(expected.tokens)


def test_one_panel_needs_no_tabs_and_tasks_without_a_panel_are_not_shown(open_at, no_panel):
    silent = replace(sightline.load("en-de"), task=no_panel.name)
    served = ServedModel("silent", silent, route_of(no_panel, "text"))
    with running(Models({"silent": served, **load_models(["en-de"]).by_name})) as server:
        page = open_at(f"{server.url}/")
        assert page.locator("#source").is_visible()
        assert not page.locator("[role=tablist]").is_visible()
        assert page.locator("#translate-model option").all_inner_texts() == ["en-de"]
        assert page.locator("#pick").count() == 0
        found = [
            name
            for name in tasks.task_names()
            if server.client.get(f"/static/panels/{name}/panel.js").status_code == 200
        ]
        assert found == ["translate"]


def test_a_server_without_any_panel_is_explained(open_at, no_panel):
    silent = replace(sightline.load("en-de"), task=no_panel.name)
    served = ServedModel("silent", silent, route_of(no_panel, "text"))
    with running(Models({"silent": served})) as server:
        page = open_at(f"{server.url}/")
        assert "no model that this page can show" in page.locator("#message").inner_text()
