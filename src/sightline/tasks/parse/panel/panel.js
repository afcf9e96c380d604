// The panel for parsing: a sentence to type, and its tree, each phrase with where the model looked.

import { make, rove, scoreOf } from '../../dom.js';
import { asJson, download } from '../../save.js';

export const title = 'Parsing';
export const mount = (root, page) => void new Parsing(root, page);

class Parsing {
  constructor(root, page) {
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    this.text = this.find('#parse-text');
    this.find('#parse-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    this.text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      this.run();
    });
    const phrases = this.find('#phrases');
    phrases.addEventListener('keydown', (event) =>
      rove(this.labels, event, { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }),
    );
    phrases.addEventListener('pointerleave', () => this.light(null));
    phrases.addEventListener('focusout', () => this.light(null));
    this.find('#parse-json').addEventListener('click', () =>
      download('tree-sightline.json', asJson(this.answer)),
    );
    this.find('#parse-brackets').addEventListener('click', () =>
      download('tree-sightline.txt', new Blob([`${this.answer.text}\n`], { type: 'text/plain' })),
    );
    this.listModels(this.find('#parse-model'));
  }

  listModels(select) {
    const { models } = this.page;
    for (const { name } of models) select.add(new Option(name));
    this.find('#parse-model-label').hidden = models.length < 2;
    const choose = () => {
      this.model = models[select.selectedIndex];
      this.find('#parse-note').textContent = this.model.description;
    };
    select.addEventListener('change', choose);
    choose();
  }

  async run() {
    const text = this.text.value.trim();
    if (!text) return this.text.focus();
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    const partial = this.find('#parse-partial');
    this.page.showMessage('');
    this.find('#parsed').hidden = partial.hidden = false;
    for (const id of ['#parse-others', '#parse-save']) this.find(id).hidden = true;
    this.find('#phrases').replaceChildren();
    const onStep = (step) => (partial.textContent = step.tokens.join(' '));
    try {
      const answer = await this.page.describe(this.model, { text }, { signal, onStep });
      partial.hidden = true;
      this.show(answer);
    } catch (error) {
      if (signal.aborted) return;
      this.find('#parsed').hidden = true;
      this.page.showError(error);
    }
  }

  show(answer) {
    this.answer = answer;
    this.labels = [];
    this.words = [];
    if (answer.tree) this.find('#phrases').replaceChildren(this.draw(answer.tree));
    this.labels.forEach((label, i) => (label.tabIndex = i ? -1 : 0));
    this.find('#parse-save').hidden = false;
    this.find('#parse-others').hidden = !answer.alternatives.length;
    this.find('#parse-others ol').replaceChildren(
      ...answer.alternatives.map((other) => make('li', {}, other.text, ' ', scoreOf(other))),
    );
    this.page.announce(`The tree has ${this.labels.length} phrases over ${this.words.length} words.`);
  }

  /** A phrase with its parts below it, or a word with its tag. */
  draw({ label, word, steps, children }) {
    if (word !== undefined) {
      const text = make('span', { className: 'text' }, word);
      this.words.push(text);
      return make('span', { className: 'leaf' }, make('span', { className: 'tag' }, label), text);
    }
    const button = make('button', { type: 'button' }, label);
    this.labels.push(button);
    for (const event of ['pointerenter', 'focus'])
      button.addEventListener(event, () => this.light(button, steps[0]));
    const parts = make('span', { className: 'parts' }, ...children.map((child) => this.draw(child)));
    const words = parts.querySelectorAll('.text');
    button.ariaLabel = `${label}: ${[...words].map((one) => one.textContent).join(' ')}`;
    return make('span', { className: 'phrase' }, button, parts);
  }

  /** Shade the words by the attention of a step. */
  light(button, step) {
    const weights = button && this.answer.attention?.[step];
    for (const label of this.labels ?? []) label.classList.toggle('lit', label === button);
    this.words?.forEach((word, i) => word.style.setProperty('--looked', weights ? weights[i] : 0));
  }
}
