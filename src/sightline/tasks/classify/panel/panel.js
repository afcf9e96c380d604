// The panel for classes: a sentence to type, its class, and the words that it was read from.

import { make, shades } from '../../dom.js';
import { Panel } from '../../panel.js';

export const title = 'Classes';
export const mount = (root, page) => void new Classes(root, page).open();

const MOST = 20; // classes that are asked for
const EXAMPLES = [
  { text: 'What is the capital of Peru?' },
  { text: 'How many people live in Tokyo?' },
  { text: 'Who wrote the first opera?' },
  { text: 'Why is the sky blue?' },
];

class Classes extends Panel {
  constructor(root, page) {
    super(root, page, 'classify', { examples: EXAMPLES });
    this.text = this.find('#classify-text');
  }

  fields() {
    const text = this.text.value.trim();
    if (!text) this.text.focus();
    return text && { text, beam: MOST, n_best: MOST };
  }

  state() {
    return { text: this.text.value };
  }

  restore({ text = '' }) {
    this.text.value = text;
  }

  show(answer) {
    const weights = answer.attention?.[0] ?? [];
    const words = answer.layout?.labels ?? [];
    const shade = shades(weights);
    this.find('#classify-words').replaceChildren(
      ...words.flatMap((word, i) => {
        const span = make('span', { title: `${(100 * weights[i]).toFixed(0)} %` }, word);
        span.style.setProperty('--weight', shade[i]);
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
    this.page.announce(`Class: ${answer.text}`);
  }
}
