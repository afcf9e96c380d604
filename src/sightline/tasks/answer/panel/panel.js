// The panel for questions: a story and a question to write, the answer, and what each hop read.

import { make } from '../../dom.js';
import { Panel } from '../../panel.js';

export const title = 'Questions';
export const mount = (root, page) => void new Questions(root, page).open();

// Stories in the manner of the bAbI tasks, which models of this kind are trained on.
const EXAMPLES = [
  {
    label: 'One fact: where is Mary?',
    story: 'Mary went to the garden.\nJohn moved to the kitchen.\nMary travelled to the office.\nJohn went back to the hallway.',
    question: 'Where is Mary?',
  },
  {
    label: 'Two facts: where is the football?',
    story: 'John picked up the football there.\nMary went to the bathroom.\nJohn journeyed to the garden.\nMary moved to the office.',
    question: 'Where is the football?',
  },
  {
    label: 'Who gave the milk to Fred?',
    story: 'Jeff took the milk there.\nJeff gave the milk to Fred.\nBill went to the kitchen.',
    question: 'Who gave the milk to Fred?',
  },
];

class Questions extends Panel {
  constructor(root, page) {
    super(root, page, 'answer', { examples: EXAMPLES });
    this.story = this.find('#story');
    this.question = this.find('#question');
    this.restore(EXAMPLES[0]);
  }

  fields() {
    const question = this.question.value.trim();
    if (!question) this.question.focus();
    return question && { text: `${this.story.value}\n${question}` };
  }

  state() {
    return { story: this.story.value, question: this.question.value };
  }

  restore({ story = '', question = '' }) {
    this.story.value = story;
    this.question.value = question;
  }

  show(answer) {
    this.find('#said').textContent = answer.text;
    const hops = answer.facts.length ? answer.attention : [];
    const looks = hops.map((_, i) => make('th', { scope: 'col' }, `look ${i + 1}`));
    const head = make('tr', {}, make('td'), ...looks);
    const rows = answer.facts.map((fact, i) =>
      make('tr', {}, make('th', { scope: 'row' }, fact), ...hops.map((weights) => cell(weights[i]))),
    );
    this.find('#hops').replaceChildren(...(hops.length ? [head, ...rows] : []));
    this.page.announce(`The answer: ${answer.text}`);
  }
}

function cell(weight) {
  const shown = weight >= 0.01 ? `${Math.round(100 * weight)} %` : '';
  const one = make('td', { className: 'weight' }, shown);
  one.style.setProperty('--looked', weight);
  return one;
}
