// The panel for pointers: points to place, and the outline as the model points at them one by one.

import { make } from '../../dom.js';
import { asJson, download } from '../../save.js';

export const title = 'Pointing';
export const mount = (root, page) => void new Pointing(root, page);

const SVG = 'http://www.w3.org/2000/svg';
const MOST = 200; // points
const NUMBERED = 60; // with more of them, no numbers are written

class Pointing {
  constructor(root, page) {
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    this.plane = this.find('#point-plane');
    this.plane.addEventListener('click', (event) => this.place(event));
    this.find('#point-run').addEventListener('click', () => this.run());
    this.find('#point-random').addEventListener('click', () => this.random());
    this.find('#point-clear').addEventListener('click', () => this.reset([]));
    this.find('#point-json').addEventListener('click', () =>
      download('points-sightline.json', asJson(this.answer)),
    );
    this.listModels(this.find('#point-model'));
    this.random();
  }

  listModels(select) {
    const { models } = this.page;
    for (const { name } of models) select.add(new Option(name));
    this.find('#point-model-label').hidden = models.length < 2;
    const choose = () => {
      this.model = models[select.selectedIndex];
      this.find('#point-note').textContent = this.model.description;
      this.reset(this.points ?? []);
    };
    select.addEventListener('change', choose);
    choose();
  }

  /** Points are [x, y] in a square of 1, upwards; on the plane of 100, downwards. */
  place(event) {
    const { left, top, width, height } = this.plane.getBoundingClientRect();
    const point = [(event.clientX - left) / width, 1 - (event.clientY - top) / height];
    if (this.points.length < MOST) this.reset([...this.points, point.map((x) => +x.toFixed(4))]);
  }

  random() {
    const count = Math.min(MOST, Math.max(1, Number(this.find('#point-count').value) || 10));
    const draw = () => +(0.05 + 0.9 * Math.random()).toFixed(4);
    this.reset(Array.from({ length: count }, () => [draw(), draw()]));
  }

  reset(points) {
    this.running?.abort();
    this.points = points;
    this.answer = null;
    this.find('#point-found').hidden = this.find('#point-save').hidden = true;
    this.draw([]);
  }

  draw(found, { group = 0, open = true, likely = [] } = {}) {
    const add = (tag, attributes, text = '') => {
      const element = this.plane.appendChild(document.createElementNS(SVG, tag));
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      element.textContent = text;
    };
    const at = this.points.map(([x, y]) => [100 * x, 100 - 100 * y]);
    this.plane.replaceChildren();
    const size = group || found.length || 1;
    for (let i = 0; i < found.length; i += size) {
      const part = found.slice(i, i + size);
      const isWhole = part.length === size && (group || !open);
      const outline = isWhole ? [...part, part[0]] : part;
      add('polyline', { points: outline.map((j) => at[j].join(',')).join(' ') });
    }
    at.forEach(([x, y], i) => {
      if (likely[i] > 0.01) add('circle', { class: 'likely', cx: x, cy: y, r: 3 * Math.sqrt(likely[i]) });
      add('circle', { class: found.includes(i) ? 'found' : '', cx: x, cy: y, r: 1.1 });
      if (at.length <= NUMBERED) add('text', { x: x + 1.6, y: y - 1.4 }, String(i));
    });
  }

  async run() {
    if (!this.points.length) return this.page.showMessage('Place some points first.');
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.page.showMessage('');
    const onStep = ({ tokens }) => this.draw(tokens.map(Number));
    try {
      const fields = { points: this.points, n_best: 1 };
      this.show(await this.page.describe(this.model, fields, { signal, onStep }));
    } catch (error) {
      if (!signal.aborted) this.page.showError(error);
    }
  }

  show(answer) {
    this.answer = answer;
    const group = answer.problem === 'delaunay' ? 3 : 0;
    this.draw(answer.positions, { group, open: answer.problem === 'sort' });
    this.plane.ariaLabel = `The points; pointed at: ${answer.text}`;
    const found = this.find('#point-found');
    found.replaceChildren(...answer.positions.flatMap((place, step) => [this.step(place, step), ' ']));
    found.hidden = this.find('#point-save').hidden = false;
    this.page.announce(`Pointed at ${answer.text}`);
  }

  /** A number of the answer: with the pointer or the focus on it, the plane shows that step. */
  step(place, step) {
    const { positions: all, attention, layout, problem } = this.answer;
    const word = make('button', { type: 'button', className: 'word' }, String(place));
    const group = problem === 'delaunay' ? 3 : 0;
    const show = () => {
      const likely = [];
      layout.labels.forEach((label, i) => (likely[Number(label)] = attention[step][i]));
      this.draw(all.slice(0, step + 1), { group, likely });
    };
    const whole = () => this.draw(all, { group, open: problem === 'sort' });
    for (const kind of ['pointerenter', 'focus']) word.addEventListener(kind, show);
    for (const kind of ['pointerleave', 'blur']) word.addEventListener(kind, whole);
    return word;
  }
}
