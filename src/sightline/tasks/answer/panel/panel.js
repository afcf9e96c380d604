// The panel for questions: a story and a question to write, the answer, and what each hop read.

import { make, scoreOf } from '../../dom.js';
import { asJson, download } from '../../save.js';

export const title = 'Questions';
export const mount = (root, page) => void new Questions(root, page);

class Questions {
  constructor(root, page) {
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    this.find('#answer-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    this.find('#answer-json').addEventListener('click', () =>
      download('answer-sightline.json', asJson(this.answer)),
    );
    this.listModels(this.find('#answer-model'));
  }

  listModels(select) {
    const { models } = this.page;
    for (const { name } of models) select.add(new Option(name));
    this.find('#answer-model-label').hidden = models.length < 2;
    const choose = () => {
      this.model = models[select.selectedIndex];
      this.find('#answer-note').textContent = this.model.description;
    };
    select.addEventListener('change', choose);
    choose();
  }

  async run() {
    const question = this.find('#question').value.trim();
    if (!question) return this.find('#question').focus();
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    const text = `${this.find('#story').value}\n${question}`;
    this.page.showMessage('');
    try {
      this.show(await this.page.describe(this.model, { text }, { signal, onStep: () => {} }));
    } catch (error) {
      if (signal.aborted) return;
      this.find('#answered').hidden = true;
      this.page.showError(error);
    }
  }

  show(answer) {
    this.answer = answer;
    this.find('#answered').hidden = false;
    this.find('#said').textContent = answer.text;
    const hops = answer.facts.length ? answer.attention : [];
    const head = make('tr', {}, make('th'), ...hops.map((_, i) => make('th', {}, `look ${i + 1}`)));
    const rows = answer.facts.map((fact, i) =>
      make('tr', {}, make('td', {}, fact), ...hops.map((weights) => cell(weights[i]))),
    );
    this.find('#hops').replaceChildren(...(hops.length ? [head, ...rows] : []));
    this.find('#answer-others').hidden = !answer.alternatives.length;
    this.find('#answer-others ol').replaceChildren(
      ...answer.alternatives.map((other) => make('li', {}, other.text, ' ', scoreOf(other))),
    );
    this.page.announce(`The answer: ${answer.text}`);
  }
}

function cell(weight) {
  const shown = weight >= 0.01 ? `${Math.round(100 * weight)} %` : '';
  const one = make('td', { className: 'weight' }, shown);
  one.style.setProperty('--looked', weight);
  return one;
}
