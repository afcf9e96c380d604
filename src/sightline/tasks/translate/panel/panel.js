// The panel for translation: a text to type, its translation, where each word came from, the search.

import { count } from '../../dom.js';
import { Panel } from '../../panel.js';
import { Tree } from '../../tree.js';
import { Alignment } from './alignment.js';

export const title = 'Translation';
export const mount = (root, page) => void new Translation(root, page).open();

const EXAMPLES = [
  { text: 'A black dog runs across the grass.' },
  { text: 'Two children are playing in the snow.' },
  { text: 'I would like a cup of coffee.' },
  { text: 'Where is the station? I have lost my ticket.' },
];

class Translation extends Panel {
  constructor(root, page) {
    super(root, page, 'translate', { examples: EXAMPLES });
    this.tree = new Tree(this.find('#translate-tree'));
    this.alignment = new Alignment(this.find('#aligned'));
    this.source = this.find('#source');
    this.written = this.find('#translated');
  }

  fields() {
    const text = this.source.value.trim();
    if (!text) this.source.focus();
    return text && { text };
  }

  state() {
    return { text: this.source.value };
  }

  restore({ text = '' }) {
    this.source.value = text;
  }

  begin() {
    this.part('result').hidden = this.written.hidden = this.find('#translate-search').hidden = false;
    this.tree.clear();
    this.alignment.clear();
    this.written.textContent = '';
  }

  step(step) {
    this.written.textContent = step.text;
    this.tree.grow(step);
  }

  show(answer) {
    this.written.hidden = true;
    this.alignment.draw(answer.source_words, answer.target_words, answer.alignment);
    const { size } = this.tree.nodes; // none for several sentences, each of which is searched alone
    this.find('#translate-search').hidden = !size;
    this.tree.light(answer.tokens);
    this.tree.settle(`The search as a tree; kept on the way: ${count(size, 'word')}.`);
    this.page.announce(`Translation: ${answer.text}`);
  }
}
