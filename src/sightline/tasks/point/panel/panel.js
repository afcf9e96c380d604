// The panel for pointers: points to place, and the outline as the model points at them one by one.

import { count, make } from '../../dom.js';
import { isCalm } from '../../pace.js';
import { Panel } from '../../panel.js';
import { Plane } from './plane.js';

export const title = 'Pointing';
export const mount = (root, page) => void new Pointing(root, page).open();

const MOST = 200; // points
const BEAT = 420; // milliseconds for each point when one watches
const TRIANGLE = 3;
const WHAT = {
  tour: 'a short round trip through all of them',
  hull: 'the outline around them',
  delaunay: 'triangles between them',
  sort: 'them in order, from left to right',
};

const ring = (size, radius, x = 0.5, y = 0.5) =>
  Array.from({ length: size }, (_, i) => {
    const angle = (2 * Math.PI * 7 * i) / size; // neighbours are not next to each other in the list
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });
const EXAMPLES = [
  { label: 'A ring', points: written(ring(10, 0.38)) },
  { label: 'A ring in a ring', points: written([...ring(6, 0.42), ...ring(4, 0.18)]) },
  { label: 'Two clusters', points: written([...ring(5, 0.15, 0.24, 0.7), ...ring(5, 0.17, 0.74, 0.28)]) },
];

class Pointing extends Panel {
  constructor(root, page) {
    super(root, page, 'point', { examples: EXAMPLES });
    this.plane = new Plane(this.find('#point-plane'), MOST, (points) => {
      this.forget();
      page.announce(count(points.length, 'point'));
    });
    this.find('#point-random').addEventListener('click', () => this.random());
    this.find('#point-clear').addEventListener('click', () => this.place([]));
    this.find('#point-play').addEventListener('click', () => (this.walking ? this.stop() : this.walk()));
    this.random();
    this.changed();
  }

  // ---------------------------------------------------------------- points

  random() {
    const wanted = Math.min(MOST, Math.max(1, Number(this.find('#point-count').value) || 10));
    const draw = () => +(0.05 + 0.9 * Math.random()).toFixed(4);
    this.place(Array.from({ length: wanted }, () => [draw(), draw()]));
  }

  place(points) {
    this.forget();
    this.plane.set(points.slice(0, MOST), this.problem === 'sort');
  }

  /** The points are others than those of the answer. */
  forget() {
    this.stop();
    this.running?.abort();
    this.answer = null;
    this.part('result').hidden = true;
  }

  /** What the model does with points: by its list entry, or by an answer. */
  get problem() {
    return this.model.about?.problem;
  }

  changed() {
    const what = WHAT[this.problem] ?? 'what it was trained to';
    this.find('#point-hint').textContent =
      `Click to place a point, drag one to move it, click it to remove it; or with the arrow keys, Space and Backspace. The model draws ${what}.`;
    this.place(this.plane.points);
  }

  fields() {
    const { points } = this.plane;
    if (!points.length) this.page.showMessage('Place some points first.');
    return points.length ? { points: this.problem === 'sort' ? points.map(([x]) => [x]) : points, n_best: 1 } : null;
  }

  state() {
    return { points: written(this.plane.points) };
  }

  restore({ points = '' }) {
    this.changed();
    const read = points.split(';').map((pair) => pair.split(',').map(Number));
    this.place(read.filter((point) => point.length && point.every((x) => x >= 0 && x <= 1)));
  }

  // ---------------------------------------------------------------- the answer

  begin() {
    this.stop();
    this.part('result').hidden = true;
  }

  step({ tokens }) {
    this.plane.draw(tokens.map(Number));
  }

  show(answer) {
    this.whole();
    this.plane.svg.ariaLabel = `The points; pointed at: ${answer.text}`;
    this.words = answer.positions.map((place, step) => this.word(place, step));
    this.find('#point-found').replaceChildren(...this.words.flatMap((word) => [word, ' ']));
    this.find('#point-about').textContent =
      answer.problem === 'tour' ? `The round trip is ${this.length().toFixed(3)} long; a side of the square is 1.` : '';
    this.page.announce(`Pointed at ${answer.text}`);
    if (!isCalm()) this.walk();
  }

  get group() {
    return this.answer.problem === 'delaunay' ? TRIANGLE : 0;
  }

  whole() {
    this.plane.draw(this.answer.positions, { group: this.group, open: this.answer.problem === 'sort' });
  }

  length() {
    const { positions } = this.answer;
    const at = (i) => this.plane.points[positions[i % positions.length]];
    return positions.reduce((sum, _, i) => sum + Math.hypot(at(i)[0] - at(i + 1)[0], at(i)[1] - at(i + 1)[1]), 0);
  }

  /** A number of the answer: with the pointer or the focus on it, the plane shows that step. */
  word(place, step) {
    const word = make('button', { type: 'button', className: 'word' }, String(place));
    word.ariaLabel = `Step ${step + 1}: point ${place}`;
    for (const kind of ['pointerenter', 'focus'])
      word.addEventListener(kind, () => {
        this.stop();
        this.showStep(step);
      });
    for (const kind of ['pointerleave', 'blur']) word.addEventListener(kind, () => this.answer && this.whole());
    return word;
  }

  showStep(step) {
    const { positions, attention, layout } = this.answer;
    const likely = [];
    layout.labels.forEach((label, i) => (likely[Number(label)] = attention[step][i]));
    this.plane.draw(positions.slice(0, step + 1), { group: this.group, likely });
  }

  // ---------------------------------------------------------------- watching it

  walk() {
    this.stop();
    this.find('#point-play').textContent = 'Stop';
    let step = 0;
    const next = () => {
      this.words.forEach((word, i) => word.classList.toggle('lit', i === step));
      if (step >= this.words.length) return this.stop();
      this.showStep(step++);
      this.walking = setTimeout(next, BEAT);
    };
    this.walking = setTimeout(next, 0);
  }

  stop() {
    if (!this.walking) return;
    clearTimeout(this.walking);
    this.walking = 0;
    this.find('#point-play').textContent = 'Watch it point';
    for (const word of this.words) word.classList.remove('lit');
    if (this.answer) this.whole();
  }
}

/** Points as a link has them. */
function written(points) {
  return points.map((point) => point.map((x) => +x.toFixed(4)).join(',')).join(';');
}
