// A square of points that are placed, moved and removed by mouse, finger or keys.

const SVG = 'http://www.w3.org/2000/svg';
const NUMBERED = 60; // with more points no numbers are written
const NEAR = 3; // of 100: a pointer so close to a point means it
const STEP = 5; // of 100, by which an arrow key moves the cursor; with Shift 1

/** Points are [x, y] in a square of 1, upwards; on the plane of 100, downwards. */
export class Plane {
  /** `onChange(points)`: some were placed, moved or removed. */
  constructor(svg, most, onChange) {
    Object.assign(this, { svg, most, onChange, points: [], flat: false, cursor: null });
    this.layers = ['polylines', 'marks', 'above'].map((name) => {
      const group = svg.appendChild(document.createElementNS(SVG, 'g'));
      group.setAttribute('class', name);
      return group;
    });
    this.listen();
  }

  /** `flat`: only the x of a point counts, and all are on one line. */
  set(points, flat = this.flat) {
    this.flat = flat;
    this.points = points.map(([x, y]) => [x, flat ? 0.5 : (y ?? 0.5)]);
    this.draw([]);
  }

  /** The outline through the points found so far, in groups of a size that are closed each; how
   *  likely each point is the next. */
  draw(found, { group = 0, open = true, likely = [] } = {}) {
    const [lines, marks] = this.layers;
    const at = this.points.map(([x, y]) => [100 * x, 100 - 100 * y]);
    lines.replaceChildren();
    marks.replaceChildren();
    const size = group || found.length || 1;
    for (let i = 0; i < found.length; i += size) {
      const part = found.slice(i, i + size);
      const isWhole = part.length === size && (group || !open);
      const outline = isWhole ? [...part, part[0]] : part;
      add(lines, 'polyline', { points: outline.map((j) => at[j].join(',')).join(' ') });
    }
    at.forEach(([x, y], i) => {
      if (likely[i] > 0.01) add(marks, 'circle', { class: 'likely', cx: x, cy: y, r: 5 * Math.sqrt(likely[i]) });
      add(marks, 'circle', { class: found.includes(i) ? 'found' : '', cx: x, cy: y, r: 1.1 });
      if (at.length <= NUMBERED) add(marks, 'text', { x: x + 1.6, y: y - 1.4 }, String(i));
    });
    this.drawCursor();
  }

  drawCursor() {
    this.layers[2].replaceChildren();
    if (!this.cursor) return;
    const [x, y] = this.cursor;
    add(this.layers[2], 'path', { class: 'cross', d: `M${x - 3} ${y}h6M${x} ${y - 3}v6` });
  }

  // ---------------------------------------------------------------- mouse and finger

  listen() {
    const { svg } = this;
    let held = null; // {index, moved} of the point under the pointer
    svg.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      const index = this.near(this.at(event));
      if (index < 0) return;
      held = { index, moved: false };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener('pointermove', (event) => {
      if (!held) return;
      const place = this.at(event);
      held.moved ||= this.near(place) !== held.index;
      if (held.moved) this.change(this.points.with(held.index, this.point(place)));
    });
    svg.addEventListener('pointerup', (event) => {
      const isOld = Boolean(held);
      if (isOld && !held.moved) this.change(this.points.toSpliced(held.index, 1));
      held = null;
      if (!isOld && event.button === 0) this.add(this.at(event));
    });
    svg.addEventListener('pointercancel', () => (held = null));
    svg.addEventListener('keydown', (event) => this.onKey(event));
    svg.addEventListener('blur', () => {
      this.cursor = null;
      this.drawCursor();
    });
  }

  at(event) {
    const { left, top, width, height } = this.svg.getBoundingClientRect();
    const inside = (value) => Math.min(100, Math.max(0, 100 * value));
    return [inside((event.clientX - left) / width), inside((event.clientY - top) / height)];
  }

  near([x, y]) {
    const far = ([a, b]) => Math.hypot(100 * a - x, this.flat ? 0 : 100 - 100 * b - y);
    const best = this.points.reduce((i, point, j) => (i < 0 || far(point) < far(this.points[i]) ? j : i), -1);
    return best >= 0 && far(this.points[best]) < NEAR ? best : -1;
  }

  point([x, y]) {
    return [x / 100, this.flat ? 0.5 : 1 - y / 100].map((value) => +value.toFixed(4));
  }

  add(place) {
    if (this.points.length < this.most) this.change([...this.points, this.point(place)]);
  }

  change(points) {
    this.set(points);
    this.onChange(points);
  }

  // ---------------------------------------------------------------- keys

  onKey(event) {
    const by = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (by) {
      const step = event.shiftKey ? 1 : STEP;
      const moved = (this.cursor ?? [50, 50]).map((value, i) => value + (this.cursor ? step * by[i] : 0));
      this.cursor = moved.map((value) => Math.min(100, Math.max(0, value)));
      this.drawCursor();
    } else if (event.key === ' ' && this.cursor) {
      const index = this.near(this.cursor);
      if (index < 0) this.add(this.cursor);
      else this.change(this.points.toSpliced(index, 1));
    } else if (event.key === 'Backspace' && this.points.length) {
      this.change(this.points.slice(0, -1));
    } else return;
    event.preventDefault();
  }
}

function add(parent, tag, attributes, text = '') {
  const element = parent.appendChild(document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
}
