// The translation tab: two sentences, and the alignment drawn as curves between their words.

import { describe } from './api.js';
import { Pace } from './pace.js';
import { asJson, download } from './save.js';
import { Tree } from './tree.js';

const SVG = 'http://www.w3.org/2000/svg';
const MOST = 6; // sentences of the beam that are listed
const WEAKEST = 0.05; // links surer than this are drawn

export class Translation {
  constructor({ models, announce, onTrouble, onWait, onCalm }) {
    Object.assign(this, { announce, onTrouble, onWait, onCalm });
    this.tree = new Tree(document.getElementById('translate-tree'));
    this.alignment = new Alignment(document.getElementById('aligned'));
    this.form = document.getElementById('translate-form');
    this.source = document.getElementById('source');
    this.model = document.getElementById('translate-model');
    for (const model of models) this.model.add(new Option(model.name, model.name, model.default, model.default));
    document.getElementById('translate-model-label').hidden = models.length < 2;
    const tell = () => {
      const { description } = models.find((model) => model.name === this.model.value);
      document.getElementById('translate-note').textContent = description ?? '';
    };
    this.model.addEventListener('change', tell);
    tell();
    this.beam = (name) => models.find((model) => model.name === name).beam ?? 5;
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.run();
    });
    this.source.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      this.run();
    });
    document.getElementById('translate-json').addEventListener('click', () =>
      download('translation-sightline.json', asJson(this.answer)),
    );
  }

  async run() {
    const text = this.source.value.trim();
    if (!text) return this.source.focus();
    this.stop?.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    const written = document.getElementById('translated');
    this.answer = null;
    document.getElementById('translation').hidden = false;
    for (const name of ['translate-others', 'translate-save']) document.getElementById(name).hidden = true;
    this.tree.clear();
    this.alignment.clear();
    written.hidden = false;
    written.textContent = '';
    const pace = new Pace((step) => {
      written.textContent = step.text;
      this.tree.grow(step);
    }, signal);
    const beam = this.beam(this.model.value);
    const n_best = Math.min(beam, MOST);
    const body = JSON.stringify({ text, model: this.model.value, beam, n_best, stream: true });
    try {
      const answer = await describe('v1/translate', () => body, {
        signal,
        onStep: (step) => pace.add(step),
        onWait: this.onWait,
      });
      await pace.drained();
      this.onCalm();
      written.hidden = true;
      this.show(answer);
    } catch (error) {
      if (signal.aborted) return;
      document.getElementById('translation').hidden = true;
      this.onTrouble(error);
    }
  }

  show(answer) {
    this.answer = answer;
    document.getElementById('translate-save').hidden = false;
    this.alignment.draw(answer.source_words, answer.target_words, answer.alignment);
    this.tree.light(answer.tokens);
    this.tree.settle(`The search as a tree: ${this.tree.nodes.size} words were kept on the way.`);
    const others = document.getElementById('translate-others');
    others.hidden = !answer.alternatives.length;
    others.querySelector('ol').replaceChildren(
      ...answer.alternatives.map(({ text, score }) => {
        const item = document.createElement('li');
        const number = document.createElement('span');
        number.className = 'score';
        number.textContent = score.toFixed(2).replace('-', '−');
        item.append(text, ' ', number);
        return item;
      }),
    );
    this.announce(`Translation: ${answer.text}`);
  }
}

/** Two sentences in two lines, or in two columns where a line would break, with curves between. */
class Alignment {
  constructor(element) {
    this.element = element;
    this.clear();
    new ResizeObserver(() => this.place()).observe(element);
    element.addEventListener('pointerleave', () => this.light(null));
    element.addEventListener('focusout', () => this.light(null));
    element.addEventListener('keydown', (event) => this.onKey(event));
  }

  clear() {
    this.links = [];
    this.sides = { source: [], target: [] };
    this.element.replaceChildren();
  }

  draw(source, target, alignment) {
    this.clear();
    this.svg = document.createElementNS(SVG, 'svg');
    this.svg.ariaHidden = 'true';
    const lines = [this.line('source', source), this.line('target', target)];
    this.element.append(lines[0], this.svg, lines[1]);
    this.links = alignment
      .filter(([, , sure]) => sure >= WEAKEST)
      .map(([from, to, sure]) => {
        const path = this.svg.appendChild(document.createElementNS(SVG, 'path'));
        path.style.setProperty('--sure', sure.toFixed(3));
        path.dataset.from = from;
        path.dataset.to = to;
        return { from, to, sure, path };
      });
    for (const side of ['source', 'target'])
      this.sides[side].forEach((word, i) => {
        const linked = this.linked(side, i).map(({ word: other }) => other.textContent);
        word.ariaLabel = `${word.textContent}: ${linked.join(', ') || 'no link'}`;
      });
    this.place();
  }

  line(side, words) {
    const line = document.createElement('div');
    line.className = `line ${side}`;
    line.role = 'group';
    line.ariaLabel = side === 'source' ? 'The sentence given' : 'Its translation';
    this.sides[side] = words.map((text, i) => {
      const word = document.createElement('button');
      word.type = 'button';
      word.className = 'word';
      word.textContent = text;
      word.tabIndex = i ? -1 : 0;
      word.addEventListener('pointerenter', () => this.light(side, i));
      word.addEventListener('focus', () => this.light(side, i));
      return word;
    });
    line.append(...this.sides[side]);
    return line;
  }

  linked(side, index) {
    const [mine, others] = side === 'source' ? ['from', 'to'] : ['to', 'from'];
    const other = this.sides[side === 'source' ? 'target' : 'source'];
    return this.links
      .filter((link) => link[mine] === index)
      .map((link) => ({ link, word: other[link[others]] }))
      .filter(({ word }) => word);
  }

  light(side, index) {
    const linked = side ? this.linked(side, index) : [];
    const lit = new Set(linked.flatMap(({ link, word }) => [link.path, word]));
    if (side) lit.add(this.sides[side][index]);
    this.element.classList.toggle('chosen', Boolean(side));
    for (const one of [...this.sides.source, ...this.sides.target, ...this.links.map((l) => l.path)])
      one.classList.toggle('lit', lit.has(one));
  }

  onKey(event) {
    const side = this.sides.source.includes(document.activeElement) ? 'source' : 'target';
    const words = this.sides[side];
    const at = words.indexOf(document.activeElement);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0 || !by) return;
    event.preventDefault();
    const next = words[Math.min(words.length - 1, Math.max(0, at + by))];
    for (const word of words) word.tabIndex = word === next ? 0 : -1;
    next.focus();
  }

  place() {
    if (!this.links.length && !this.sides.source.length) return;
    this.element.classList.remove('columns');
    const broken = Object.values(this.sides).some(
      (words) => words.length && words[0].offsetTop !== words.at(-1).offsetTop,
    );
    this.element.classList.toggle('columns', broken);
    const origin = this.svg.getBoundingClientRect();
    for (const { from, to, path } of this.links) {
      const a = this.sides.source[from]?.getBoundingClientRect();
      const b = this.sides.target[to]?.getBoundingClientRect();
      if (a && b) path.setAttribute('d', broken ? across(a, b, origin) : down(a, b, origin));
    }
  }
}

function down(a, b, origin) {
  const [x1, y1] = [a.left + a.width / 2 - origin.left, a.bottom - origin.top];
  const [x2, y2] = [b.left + b.width / 2 - origin.left, b.top - origin.top];
  const bend = (y2 - y1) / 2;
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

function across(a, b, origin) {
  const [x1, y1] = [a.right - origin.left, a.top + a.height / 2 - origin.top];
  const [x2, y2] = [b.left - origin.left, b.top + b.height / 2 - origin.top];
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
