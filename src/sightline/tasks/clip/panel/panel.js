// The panel for clips: choose or film one, watch it play, and see at which frames each word looked.

import { getBlob } from '../../api.js';
import { make, shades } from '../../dom.js';
import { Panel } from '../../panel.js';
import { Words } from '../../words.js';
import { listenForClips } from './choose.js';
import { drawFrames } from './frames.js';

export const title = 'Clips';
export const mount = (root, page) => void new Clips(root, page).open();

const SAMPLE = 'static/panels/clip/sample.mp4';
const EXAMPLES = [{ label: 'The camera moves over two photos', sample: '1' }];

class Clips extends Panel {
  constructor(root, page) {
    super(root, page, 'clip', { examples: EXAMPLES });
    this.cells = [];
    this.film = this.find('#clip-film');
    this.picture = this.find('#clip-picture');
    this.words = new Words(this.find('#clip-words'), (i) => this.showWord(i));
    listenForClips(root, (clip) => this.give(clip), page.showMessage);
    this.film.addEventListener('error', () => this.film.src && this.cannotPlay());
    const follow = () => {
      this.showTime();
      if (!this.film.paused) requestAnimationFrame(follow);
    };
    this.film.addEventListener('play', follow);
    this.film.addEventListener('seeked', () => this.showTime());
  }

  // ---------------------------------------------------------------- what is asked

  give(clip) {
    this.clip = clip;
    this.isSample = false;
    this.run();
  }

  fields() {
    return this.clip ? { file: this.clip } : null;
  }

  /** A clip of the user's own is in no link. */
  state() {
    return this.isSample ? { sample: '1' } : {};
  }

  async take(state) {
    if (state.sample) this.clip = await getBlob(SAMPLE).catch(this.page.showError);
    this.isSample = Boolean(state.sample);
    return super.take(state);
  }

  begin() {
    if (this.shown !== this.clip) this.watch(this.clip);
    this.words.write([]);
    this.cells = [];
    this.find('#clip-strip').replaceChildren();
    for (const note of ['#clip-readout', '#clip-hint']) this.find(note).textContent = '';
    this.part('result').hidden = false;
  }

  watch(clip) {
    this.shown = clip;
    URL.revokeObjectURL(this.url);
    this.url = URL.createObjectURL(clip);
    const isPicture = clip.type === 'image/gif'; // which moves, but cannot be stopped
    this.picture.hidden = !isPicture;
    this.film.hidden = isPicture;
    this.find('#clip-unseen').hidden = true;
    this.find('#clip-credit').hidden = !this.isSample;
    this.film.removeAttribute('src');
    if (isPicture) this.picture.src = this.url;
    else this.film.src = this.url;
    this.film.play().catch(() => {}); // it has a button
  }

  cannotPlay() {
    this.film.hidden = true;
    this.find('#clip-unseen').hidden = false;
  }

  // ---------------------------------------------------------------- the answer

  step({ tokens }) {
    this.words.write(tokens);
  }

  show({ tokens, log_probs: logProbs, attention, layout, text }) {
    const labels = layout?.labels ?? [];
    const isFrame = (_, i) => !labels.length || labels[i] === 'frame'; // others are of motion
    this.times = (layout?.times ?? []).filter(isFrame);
    this.rows = attention?.map((row) => row.filter(isFrame)) ?? null;
    this.words.write(tokens);
    const best = this.rows?.map((row) => row.indexOf(Math.max(...row)));
    this.words.label(logProbs.map(Math.exp), best?.map((i) => `frame at ${this.clock(i)}`));
    this.cells = this.times.map((time, i) => this.cell(time, i));
    this.find('#clip-strip').replaceChildren(...this.cells.map((cell) => make('li', {}, cell)));
    if (!this.picture.hidden || this.film.hidden) this.cells.forEach((cell) => (cell.firstChild.hidden = true));
    else drawFrames(this.url, this.times, this.cells.map((cell) => cell.firstChild));
    this.find('#clip-hint').textContent = this.rows
      ? 'Point at a word to see at which frames it looked. While the clip plays, the words that looked at this moment are lit.'
      : 'This model does not attend: it reads the clip as a whole.';
    this.showTime();
    this.page.announce(`What happens: ${text}`);
  }

  clock(i) {
    return `${this.times[i].toFixed(1)} s`;
  }

  /** A frame: pointing at it lights the words that looked there, a click shows it in the film. */
  cell(time, i) {
    const bar = make('span', { className: 'bar' });
    const cell = make('button', { type: 'button' }, make('canvas', { width: 96, height: 72 }), bar);
    cell.ariaLabel = `Frame at ${this.clock(i)}`;
    cell.addEventListener('click', () => this.goTo(i));
    for (const kind of ['pointerenter', 'focus']) cell.addEventListener(kind, () => this.shade(i));
    for (const kind of ['pointerleave', 'blur']) cell.addEventListener(kind, () => this.showTime());
    return cell;
  }

  goTo(i) {
    this.film.pause();
    this.film.currentTime = this.times[i];
  }

  // ---------------------------------------------------------------- where it looked

  /** The frames of one word, by its weights; of none, all of them. */
  showWord(index) {
    const row = index === null ? null : (this.rows?.[index] ?? null);
    const light = row && shades(row);
    this.cells.forEach((cell, i) => {
      cell.style.setProperty('--light', light ? light[i] : 1);
      cell.style.setProperty('--weight', light ? light[i] : 0);
    });
    const best = row && row.indexOf(Math.max(...row));
    this.find('#clip-readout').textContent = row
      ? `“${this.answer.tokens[index]}” · most at ${this.clock(best)}, ${Math.round(100 * row[best])} % of its attention`
      : '';
    if (row && this.film.paused) this.film.currentTime = this.times[best];
  }

  /** The moment that the film is at. */
  showTime() {
    if (!this.answer || !this.times?.length) return;
    const { currentTime } = this.film;
    const apart = this.times.map((time) => Math.abs(time - currentTime));
    const now = apart.indexOf(Math.min(...apart));
    this.cells.forEach((cell, i) => cell.classList.toggle('now', i === now && !this.film.hidden));
    this.shade(this.film.hidden ? null : now);
  }

  /** Words, by how much of their attention is at a frame: those that looked there most stand out. */
  shade(i) {
    const values = i === null || !this.rows ? null : this.rows.map((row) => shades(row)[i] ** 2);
    this.words.shade(values);
  }
}
