// The beam as a tree that grows while the search runs: one column per step, one path per sentence.

import { isCalm } from './pace.js';

const ROW = 21;
const GAP = 26; // room for an edge between two columns
const LEFT = 18;
const MOVE = 160; // milliseconds in which the tree takes its new shape
const SVG = 'http://www.w3.org/2000/svg';

export class Tree {
  constructor(element) {
    this.element = element;
    this.measure = document.createElement('canvas').getContext('2d');
    this.clear();
  }

  clear() {
    cancelAnimationFrame(this.frame);
    this.nodes = new Map();
    this.top = [];
    this.svg = document.createElementNS(SVG, 'svg');
    this.edges = this.svg.appendChild(document.createElementNS(SVG, 'g'));
    this.svg.append(make('circle', { r: 3.5, cx: LEFT, cy: ROW * 0.8, class: 'root' }));
    this.element.replaceChildren(this.svg);
    this.element.scrollLeft = 0;
    this.measure.font = getComputedStyle(this.element).font;
  }

  /** The candidates of one step, those still on the beam, and the best sentence so far. */
  grow({ nodes = [], alive = [], tokens = [] }) {
    for (const node of nodes) {
      if (!(node.alive || node.finished)) continue; // considered and dropped at once
      const parent = this.nodes.get(node.parent);
      const added = { ...node, parent, children: [], depth: parent ? parent.depth + 1 : 0 };
      this.nodes.set(node.id, added);
      (parent?.children ?? this.top).push(added);
      this.draw(added);
    }
    const living = new Set();
    for (const node of this.nodes.values())
      if (node.finished || alive.includes(node.id))
        for (let up = node; up; up = up.parent) living.add(up);
    for (const node of this.nodes.values()) mark(node, 'dead', !living.has(node));
    this.light(tokens);
    this.layOut();
    this.element.scrollLeft = this.element.scrollWidth;
  }

  /** Light the path of a sentence. */
  light(tokens) {
    const path = new Set(follow(this.top, tokens));
    const level = [...path].at(-1)?.children ?? this.top;
    const end = level.find((child) => child.finished && !tokens.includes(child.token));
    if (end && path.size === tokens.length) path.add(end);
    for (const node of this.nodes.values()) mark(node, 'best', path.has(node));
    for (const node of path) this.edges.append(node.edge); // drawn last, on top
  }

  settle(label) {
    this.element.ariaLabel = label;
    this.element.scrollLeft = 0;
  }

  draw(node) {
    const isEnd = node.finished && /^<.*>$/.test(node.token);
    const word = node.token.replaceAll('▁', ' ').trim() || '␣'; // pieces of words keep their blanks
    node.width = isEnd ? 8 : Math.ceil(this.measure.measureText(word).width);
    node.edge = this.edges.appendChild(make('path', {}));
    node.label = this.svg.appendChild(
      isEnd ? make('circle', { r: 3.5, cx: 4, cy: 0 }) : make('text', { y: 4 }),
    );
    if (!isEnd) node.label.textContent = word;
    const title = make('title', {});
    title.textContent = `${isEnd ? 'the end' : word}, score ${node.score?.toFixed(2)}`;
    node.label.append(title);
    node.y = node.parent?.y ?? null;
  }

  // ---------------------------------------------------------------- places

  layOut() {
    const columns = [];
    let row = 0;
    // A word's best successor is in its row, so that likely sentences are straight lines
    const walk = (nodes) =>
      nodes
        .toSorted((a, b) => b.score - a.score)
        .forEach((node, i) => {
          if (i) row++;
          node.toY = ROW * (0.8 + row);
          columns[node.depth] = Math.max(columns[node.depth] ?? 0, node.width);
          walk(node.children);
        });
    walk(this.top);
    if (!this.nodes.size) return;
    const x = [LEFT + GAP];
    columns.forEach((width, i) => (x[i + 1] = x[i] + width + GAP));
    for (const node of this.nodes.values()) node.x = x[node.depth];
    this.svg.setAttribute('width', x.at(-1));
    this.svg.setAttribute('height', ROW * (row + 1.6));
    this.animate();
  }

  animate() {
    cancelAnimationFrame(this.frame);
    const nodes = [...this.nodes.values()];
    for (const node of nodes) node.fromY = node.y ?? node.toY;
    const began = performance.now();
    const calm = isCalm();
    const step = (now) => {
      const part = calm ? 1 : Math.min(1, Math.max(0, (now - began) / MOVE));
      for (const node of nodes) node.y = node.fromY + (node.toY - node.fromY) * part;
      this.place(nodes);
      if (part < 1) this.frame = requestAnimationFrame(step);
    };
    step(began);
  }

  place(nodes) {
    for (const node of nodes) {
      node.label.setAttribute('transform', `translate(${node.x} ${node.y})`);
      const from = node.parent
        ? [node.parent.x + node.parent.width + 5, node.parent.y]
        : [LEFT + 5, ROW * 0.8];
      const start = node.x - GAP + 5; // edges run level to the end of the column, then bend
      const bend = node.x - GAP / 2;
      node.edge.setAttribute(
        'd',
        `M${from[0]} ${from[1]}H${start}C${bend} ${from[1]} ${bend} ${node.y} ${node.x - 5} ${node.y}`,
      );
    }
  }
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function mark(node, name, is) {
  node.label.classList.toggle(name, is);
  node.edge.classList.toggle(name, is);
}

/** The nodes of these words, as far as there are any; groups of a beam may write the same ones. */
function follow(level, [token, ...rest]) {
  const paths = level
    .filter((node) => node.token === token)
    .map((node) => [node, ...follow(node.children, rest)]);
  return paths.reduce((one, other) => (other.length > one.length ? other : one), []);
}
