// The panel for translation: a sentence to type, its translation, and the search.

import { make, scoreOf } from '../../dom.js';
import { asJson, download } from '../../save.js';
import { Tree } from '../../tree.js';
import { Alignment } from './alignment.js';

export const title = 'Translation';
export const mount = (root, page) => void new Translation(root, page);

class Translation {
  constructor(root, page) {
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    this.tree = new Tree(this.find('#translate-tree'));
    this.alignment = new Alignment(this.find('#aligned'));
    this.source = this.find('#source');
    this.find('#translate-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    this.source.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      this.run();
    });
    this.find('#translate-json').addEventListener('click', () =>
      download('translation-sightline.json', asJson(this.answer)),
    );
    this.listModels(this.find('#translate-model'));
  }

  listModels(select) {
    const { models } = this.page;
    for (const { name } of models) select.add(new Option(name));
    this.find('#translate-model-label').hidden = models.length < 2;
    const choose = () => {
      this.model = models[select.selectedIndex];
      this.find('#translate-note').textContent = this.model.description;
    };
    select.addEventListener('change', choose);
    choose();
  }

  async run() {
    const text = this.source.value.trim();
    if (!text) return this.source.focus();
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    const written = this.find('#translated');
    this.page.showMessage('');
    this.find('#translation').hidden = written.hidden = false;
    for (const id of ['#translate-others', '#translate-save']) this.find(id).hidden = true;
    this.tree.clear();
    this.alignment.clear();
    written.textContent = '';
    const onStep = (step) => {
      written.textContent = step.text;
      this.tree.grow(step);
    };
    try {
      const answer = await this.page.describe(this.model, { text }, { signal, onStep });
      written.hidden = true;
      this.show(answer);
    } catch (error) {
      if (signal.aborted) return;
      this.find('#translation').hidden = true;
      this.page.showError(error);
    }
  }

  show(answer) {
    this.answer = answer;
    this.find('#translate-save').hidden = false;
    this.alignment.draw(answer.source_words, answer.target_words, answer.alignment);
    this.tree.light(answer.tokens);
    this.tree.settle(`The search as a tree: ${this.tree.nodes.size} words were kept on the way.`);
    this.find('#translate-others').hidden = !answer.alternatives.length;
    this.find('#translate-others ol').replaceChildren(
      ...answer.alternatives.map((other) => make('li', {}, other.text, ' ', scoreOf(other))),
    );
    this.page.announce(`Translation: ${answer.text}`);
  }
}
