// What panels that send a text, points or the like have in common: the choice of a model and what is
// said of it, examples, one request at a time, files to save, and links.
//
// The panel's markup has a form (what is sent), and an element with `data-part="result"` (hidden until
// there is an answer). This class fills the elements with these values of `data-part`:
//   model      the choice of a model and its description
//   examples   buttons, one for each example
//   others     a heading and a list, which gets the alternatives; a panel may do without it
//   save       buttons: JSON, the panel's own files, and the link
//   about      what the model can and cannot do
// Ids begin with the panel's name: #NAME-model, #NAME-json, #NAME-link …

import { about, sureness } from './about.js';
import { make, scoreOf } from './dom.js';
import { copyLink } from './links.js';
import { asJson, download } from './save.js';

export class Panel {
  /** `files`: {label: () => [file name, blob]}, besides JSON. */
  constructor(root, page, name, { examples = [], files = {} } = {}) {
    Object.assign(this, { root, page, name, answer: null });
    this.find = (selector) => root.querySelector(selector);
    this.part = (part) => root.querySelector(`[data-part=${part}]`);
    this.find('form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    for (const field of root.querySelectorAll('form [data-enter]')) runOnEnter(field, () => this.run());
    this.listModels();
    this.listExamples(examples);
    this.listFiles({ JSON: () => [`${name}-sightline.json`, asJson(this.answer)], ...files });
  }

  // ---------------------------------------------------------------- what a panel says itself

  /** The request's fields; null if something is missing (then it has the focus). */
  fields() {
    return null;
  }

  /** What a link or an example says, by name, each a text: enough for `restore`. */
  state() {
    return {};
  }

  restore() {}

  begin() {}

  step() {}

  show() {}

  /** Another model was chosen. */
  changed() {
    if (this.answer) this.run();
  }

  // ---------------------------------------------------------------- requests

  /** To be called once the panel is complete: what a link says is asked at once. */
  open() {
    const { state } = this.page;
    if (state) this.take(state);
  }

  /** An example or a link: its state, and then the answer to it. */
  take(state) {
    const at = this.page.models.findIndex(({ name }) => name === state.model);
    if (at >= 0) this.choose(at);
    this.restore(state);
    return this.run();
  }

  async run() {
    const fields = this.fields();
    if (!fields) return;
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.page.showMessage('');
    this.answer = null;
    this.part('save').hidden = true;
    this.listOthers([]);
    this.begin();
    try {
      const onStep = (step) => this.step(step);
      const answer = await this.page.describe(this.model, fields, { signal, onStep });
      if (signal.aborted) return;
      this.answer = answer;
      this.part('result').hidden = this.part('save').hidden = false;
      this.sure.textContent = sureness(answer, 'answers');
      this.listOthers(answer.alternatives);
      this.show(answer);
    } catch (error) {
      if (signal.aborted) return;
      this.part('result').hidden = true;
      this.page.showError(error);
    }
  }

  // ---------------------------------------------------------------- the shared parts

  listModels() {
    const { models } = this.page;
    this.select = make('select', { id: `${this.name}-model` });
    for (const { name } of models) this.select.add(new Option(name));
    const label = make('label', { className: 'model', hidden: models.length < 2 }, 'Model ', this.select);
    this.note = make('span', { className: 'note', id: `${this.name}-note` });
    this.part('model').classList.add('row');
    this.part('model').replaceChildren(label, this.note);
    this.select.addEventListener('change', () => {
      this.choose(this.select.selectedIndex);
      this.changed();
    });
    this.choose(0);
  }

  choose(index) {
    this.select.selectedIndex = index;
    this.model = this.page.models[index];
    this.note.textContent = this.model.description;
    this.part('about').replaceChildren(about(this.model));
  }

  listExamples(examples) {
    const buttons = examples.map(({ label, ...state }) => {
      const button = make('button', { type: 'button' }, label ?? state.text);
      button.addEventListener('click', () => this.take(state));
      return make('li', {}, button);
    });
    const title = make('h2', { id: `${this.name}-examples` }, 'Or try one of these');
    const list = make('ul', {}, ...buttons);
    list.setAttribute('aria-labelledby', title.id);
    this.part('examples').classList.add('examples');
    this.part('examples').replaceChildren(title, list);
  }

  listFiles(files) {
    const place = this.part('save');
    this.sure = make('p', { className: 'note sure-of' });
    place.before(this.sure);
    const buttons = Object.entries(files).map(([label, file]) => {
      const button = make('button', { type: 'button', id: `${this.name}-${label.toLowerCase()}` }, label);
      button.addEventListener('click', () => download(...file()));
      return button;
    });
    place.classList.add('save');
    place.hidden = true;
    place.replaceChildren(make('span', {}, 'Save as'), ...buttons, this.linkButton());
  }

  listOthers(alternatives) {
    const place = this.part('others');
    if (!place) return;
    place.hidden = !alternatives.length;
    const items = alternatives.map((other) => make('li', {}, other.text, ' ', scoreOf(other)));
    place.querySelector('ol').replaceChildren(...items);
  }

  linkButton() {
    const state = () => ({ model: this.model.name, ...this.state() });
    return linkButton(`${this.name}-link`, () => this.page.link(state()), this.page.announce);
  }
}

/** A button that copies a link, and says so for a while. */
export function linkButton(id, link, announce) {
  const button = make('button', { type: 'button', id, className: 'link' }, 'Copy a link');
  button.title = 'What you entered is in the link itself; nothing of it is kept on the server';
  button.addEventListener('click', async () => {
    button.textContent = await copyLink(link());
    announce(button.textContent);
    setTimeout(() => (button.textContent = 'Copy a link'), 4000);
  });
  return button;
}

/** Enter sends; with Shift it begins a line. */
function runOnEnter(field, run) {
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    run();
  });
}
