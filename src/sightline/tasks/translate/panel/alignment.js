// The alignment of two sentences: curves between words; the stronger, the more certain.

import { make, rove } from '../../dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const WEAKEST = 0.05; // links with less confidence are not drawn

/** Two sentences in two lines, or in two columns where a line would break, with curves between. */
export class Alignment {
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
    this.sides[side] = words.map((text, i) => {
      const word = make('button', { type: 'button', className: 'word', tabIndex: i ? -1 : 0 }, text);
      word.addEventListener('pointerenter', () => this.light(side, i));
      word.addEventListener('focus', () => this.light(side, i));
      return word;
    });
    const ariaLabel = side === 'source' ? 'The sentence given' : 'Its translation';
    return make('div', { className: `line ${side}`, role: 'group', ariaLabel }, ...this.sides[side]);
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
    rove(this.sides[side], event, { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 });
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
