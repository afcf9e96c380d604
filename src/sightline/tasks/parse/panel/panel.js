// The panel for parsing: a sentence to type, and its tree, each phrase with where the model looked.

import { count, make, rove, shades } from '../../dom.js';
import { Panel } from '../../panel.js';

export const title = 'Parsing';
export const mount = (root, page) => void new Parsing(root, page).open();

const KEYS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const EXAMPLES = [
  { text: 'The dog sees a cat in the garden.' },
  { text: 'She said that the old house had been sold.' },
  { text: 'The man with the telescope saw the children on the hill.' },
];

class Parsing extends Panel {
  constructor(root, page) {
    const brackets = () => new Blob([`${this.answer.text}\n`], { type: 'text/plain' });
    const files = { Brackets: () => ['parse-sightline.txt', brackets()] };
    super(root, page, 'parse', { examples: EXAMPLES, files });
    this.text = this.find('#parse-text');
    this.partial = this.find('#parse-partial');
    const phrases = this.find('#phrases');
    phrases.addEventListener('keydown', (event) => rove(this.labels, event, KEYS));
    phrases.addEventListener('pointerleave', () => this.light(null));
    phrases.addEventListener('focusout', () => this.light(null));
  }

  fields() {
    const text = this.text.value.trim();
    if (!text) this.text.focus();
    return text && { text };
  }

  state() {
    return { text: this.text.value };
  }

  restore({ text = '' }) {
    this.text.value = text;
  }

  begin() {
    this.part('result').hidden = this.partial.hidden = false;
    this.partial.textContent = '';
    this.find('#phrases').replaceChildren();
  }

  step(step) {
    this.partial.textContent = step.tokens.join(' ');
  }

  show(answer) {
    this.partial.hidden = true;
    this.labels = [];
    this.words = [];
    if (answer.tree) this.find('#phrases').replaceChildren(this.draw(answer.tree));
    this.labels.forEach((label, i) => (label.tabIndex = i ? -1 : 0));
    this.page.announce(`The tree has ${count(this.labels.length, 'phrase')} over ${count(this.words.length, 'word')}.`);
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
    const shade = weights && shades(weights);
    this.words?.forEach((word, i) => word.style.setProperty('--looked', shade ? shade[i] : 0));
  }
}
