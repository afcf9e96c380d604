// The page: tabs, messages and the API key. What a tab shows is a task's panel.
//
// A panel is a folder of files that comes with its task:
//   panel.html  goes into the page's section for the task; its ids are unique in the whole page
//   panel.js    a module with `title`, the tab's, and `mount(section, page)`, called once
// `mount` may be asynchronous. What it gets as `page`:
//   models                  the task's models as /v1/models lists them, the default first
//   describe(model, fields, {signal, onStep})  the model's answer; `fields` are the request's
//   show()                  bring the panel to the front
//   showMessage(text)       above the panel, '' for none; showError(error) explains an error there
//   announce(text)          for screen readers
//   state                   what a link to this panel says, texts by name; null if none was followed
//   link(state)             a link that opens the panel in this state
// Panels import what they share from '../../': api.js, dom.js, frame.js, tree.js, words.js … Most are
// a class that extends the one in panel.js, which has models, examples, requests, files and links.

import { ServiceError, describe, getJson, useKey } from './api.js';
import { make } from './dom.js';
import { linkTo, readLink } from './links.js';
import { Pace } from './pace.js';

const MOST = 6; // sentences of the beam that are listed

const element = (id) => document.getElementById(id);
const sections = [...document.querySelectorAll('[role=tabpanel]')];

// ---------------------------------------------------------------- messages

function showMessage(text, kind = 'error') {
  const message = element('message');
  message.hidden = !text;
  message.className = `message ${kind}`;
  message.textContent = text;
}

function showError(error) {
  const isKnown = error instanceof ServiceError;
  if (!isKnown) console.error(error);
  showMessage(isKnown ? error.message : 'Something went wrong on this page. Please try again.');
}

// ---------------------------------------------------------------- tabs

function show(section) {
  for (const one of sections) {
    one.hidden = one !== section;
    const tab = element(`tab-${one.dataset.task}`);
    tab.ariaSelected = String(one === section);
    tab.tabIndex = one === section ? 0 : -1;
  }
}

function newTab(title, section) {
  const tab = make('button', { role: 'tab', id: `tab-${section.dataset.task}` }, title);
  tab.setAttribute('aria-controls', section.id);
  tab.addEventListener('click', () => {
    showMessage('');
    show(section);
  });
  return tab;
}

element('tabs').addEventListener('keydown', (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1, Home: 0, End: 0 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  const tabs = [...element('tabs').children];
  const at = tabs.indexOf(document.activeElement) + by;
  const next = { Home: tabs[0], End: tabs.at(-1) }[event.key] ?? tabs.at(at % tabs.length);
  next.click();
  next.focus();
});

// ---------------------------------------------------------------- links

const linked = () => sections.find(({ dataset }) => dataset.task === readLink().task);

addEventListener('hashchange', () => linked() && location.reload()); // another link was followed

// ---------------------------------------------------------------- requests

/** Steps are shown at a pace that an eye can follow, and the answer after the last of them. */
async function follow(model, fields, { signal, onStep }) {
  const beam = fields.beam ?? model.beam;
  const pace = new Pace(onStep, signal);
  const body = { model: model.name, beam, n_best: Math.min(beam, MOST), stream: true, ...fields };
  const answer = await describe(model.route.slice(1), body, {
    signal,
    onStep: (step) => pace.add(step),
    onWait: (seconds) => showMessage(`The server is busy. Trying again in ${seconds} s …`, 'wait'),
  });
  await pace.drained();
  signal.throwIfAborted();
  if (element('message').matches('.wait')) showMessage(''); // an error stays
  return answer;
}

// ---------------------------------------------------------------- the start

async function start() {
  const { models } = await getJson('v1/models');
  if (!sections.length) return showMessage('This server has no model that this page can show.');
  const panels = await Promise.all(
    sections.map(({ dataset }) => import(`./panels/${dataset.task}/panel.js`)),
  );
  element('tabs').replaceChildren(...panels.map(({ title }, i) => newTab(title, sections[i])));
  element('tabs').hidden = panels.length < 2;
  const opened = linked();
  show(opened ?? sections[0]);
  const mounted = panels.map(({ mount }, i) =>
    mount(sections[i], {
      models: models.filter(({ task }) => task === sections[i].dataset.task),
      describe: follow,
      show: () => show(sections[i]),
      announce: (text) => (element('live').textContent = text),
      state: sections[i] === opened ? readLink().state : null,
      link: (state) => linkTo(sections[i].dataset.task, state),
      showMessage,
      showError,
    }),
  );
  await Promise.all(mounted);
}

/** A server may need a key before it lists its models. */
function askForKey(error) {
  if (error.status !== 401) throw error;
  const form = element('key-form');
  form.hidden = false;
  for (const section of sections) section.hidden = true;
  element('key').focus();
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    useKey(element('key').value);
    showMessage('');
    try {
      await start();
      form.hidden = true;
    } catch (wrong) {
      showError(wrong);
    }
  });
}

start()
  .catch(askForKey)
  .catch(showError)
  .finally(() => (document.body.dataset.ready = 'true'));
