// The panel for language models: a text to begin, and its continuation as it is drawn.

import { make } from '../../dom.js';
import { Panel } from '../../panel.js';

export const title = 'Writing';
export const mount = (root, page) => void new Writing(root, page).open();

const SURPRISED = 5; // nats at which a piece is marked the most
const EXAMPLES = [
  { label: 'ROMEO:', text: 'ROMEO:\n' },
  { label: 'To be, or not to be', text: 'To be, or not to be' },
  { label: 'The likeliest each time', text: 'First Citizen:\n', temperature: '0' },
];

class Writing extends Panel {
  constructor(root, page) {
    super(root, page, 'language_model', { examples: EXAMPLES });
    [this.prompt, this.length, this.temperature] = ['#prompt', '#length', '#temperature'].map(this.find);
    this.written = this.find('#written');
    this.seed = 0;
    this.prompt.value = EXAMPLES[0].text;
  }

  fields() {
    const { seed } = this;
    this.seed++; // another text the next time
    const drawn = { temperature: Number(this.temperature.value), length: Number(this.length.value), seed };
    return { text: this.prompt.value, beam: 1, n_best: 1, ...drawn };
  }

  state() {
    const [temperature, length] = [this.temperature.value, this.length.value];
    return { text: this.prompt.value, temperature, length, seed: String(this.seed - 1) };
  }

  restore({ text = '', temperature = '1', length = '300', seed = '0' }) {
    this.prompt.value = text;
    this.temperature.value = temperature;
    this.length.value = length;
    this.seed = Number.parseInt(seed, 10) || 0;
    for (const choice of [this.temperature, this.length]) choice.selectedIndex = Math.max(0, choice.selectedIndex);
  }

  begin() {
    this.part('result').hidden = false;
    this.asked = this.prompt.value;
    this.written.replaceChildren(make('span', { className: 'given' }, this.asked));
  }

  step({ text }) {
    this.written.replaceChildren(
      make('span', { className: 'given' }, this.asked),
      make('span', {}, text.slice(this.asked.length)),
    );
  }

  show({ text, tokens, log_probs }) {
    const given = make('span', { className: 'given' }, this.asked);
    const isPlain = tokens.join('') === text; // characters; words and pieces are put together otherwise
    const rest = isPlain ? pieces(tokens, log_probs, this.asked.length) : [text.slice(this.asked.length)];
    this.written.replaceChildren(given, ...rest);
    this.page.announce(`It wrote: ${text.slice(this.asked.length)}`);
  }
}

/** The tokens after the first `skip` characters, each marked by how unlikely it was. */
function pieces(tokens, logProbs, skip) {
  let at = 0;
  return tokens.flatMap((token, i) => {
    at += token.length;
    if (at <= skip) return [];
    const piece = make('span', { className: 'piece', title: `${(100 * Math.exp(logProbs[i])).toFixed(1)} %` }, token);
    piece.style.setProperty('--surprise', Math.min(1, -logProbs[i] / SURPRISED).toFixed(3));
    return [piece];
  });
}
