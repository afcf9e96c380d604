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
    this.element.append(this.line('source', source), this.svg, this.line('target', target));
    this.links = alignment
      .filter(([, , sure]) => sure >= WEAKEST)
      .map(([from, to, sure]) => {
        const path = this.svg.appendChild(document.createElementNS(SVG, 'path'));
        path.style.setProperty('--sure', sure.toFixed(3));
        path.dataset.from = from;
        path.dataset.to = to;
        return { from, to, path };
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
      if (a && b) path.setAttribute('d', curve(a, b, origin, broken));
    }
  }
}

/** A path between two words' boxes: from right to left if they are in columns, else from bottom to top. */
function curve(a, b, { left, top }, inColumns) {
  const [x1, y1] = inColumns ? [a.right, a.top + a.height / 2] : [a.left + a.width / 2, a.bottom];
  const [x2, y2] = inColumns ? [b.left, b.top + b.height / 2] : [b.left + b.width / 2, b.top];
  const [dx, dy] = inColumns ? [(x2 - x1) / 2, 0] : [0, (y2 - y1) / 2];
  const points = [[x1, y1], [x1 + dx, y1 + dy], [x2 - dx, y2 - dy], [x2, y2]];
  const [start, ...bend] = points.map(([x, y]) => `${x - left} ${y - top}`);
  return `M${start}C${bend.join(' ')}`;
}
