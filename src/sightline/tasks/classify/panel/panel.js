// The panel for classes: a sentence to type, its class, and the words that it was read from.

import { make } from '../../dom.js';
import { asJson, download } from '../../save.js';

export const title = 'Classes';
export const mount = (root, page) => void new Classes(root, page);

const MOST = 20; // classes that are asked for

class Classes {
  constructor(root, page) {
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    this.text = this.find('#classify-text');
    this.find('#classify-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    this.text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      this.run();
    });
    this.find('#classify-json').addEventListener('click', () =>
      download('class-sightline.json', asJson(this.answer)),
    );
    this.listModels(this.find('#classify-model'));
  }

  listModels(select) {
    const { models } = this.page;
    for (const { name } of models) select.add(new Option(name));
    this.find('#classify-model-label').hidden = models.length < 2;
    const choose = () => {
      this.model = models[select.selectedIndex];
      this.find('#classify-note').textContent = this.model.description;
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
    this.page.showMessage('');
    try {
      const fields = { text, beam: MOST, n_best: MOST };
      this.show(await this.page.describe(this.model, fields, { signal, onStep: () => {} }));
    } catch (error) {
      if (signal.aborted) return;
      this.find('#classified').hidden = true;
      this.page.showError(error);
    }
  }

  show(answer) {
    this.answer = answer;
    const weights = answer.attention?.[0] ?? [];
    const words = answer.layout?.labels ?? [];
    const largest = Math.max(...weights, 1e-9);
    this.find('#classify-words').replaceChildren(
      ...words.flatMap((word, i) => {
        const span = make('span', { title: `${(100 * weights[i]).toFixed(0)} %` }, word);
        span.style.setProperty('--weight', (weights[i] / largest).toFixed(3));
        return [span, ' '];
      }),
    );
    this.find('#classify-hint').hidden = !words.length;
    const classes = Object.entries(answer.probabilities).map(([name, share]) => {
      const bar = make('span', { className: 'bar' });
      bar.style.setProperty('--share', share.toFixed(4));
      const percent = `${(100 * share).toFixed(1)} %`;
      return make('li', {}, make('span', {}, name), bar, make('span', { className: 'share' }, percent));
    });
    this.find('#classify-classes').replaceChildren(...classes);
    this.find('#classified').hidden = false;
    this.page.announce(`Class: ${answer.text}`);
  }
}
