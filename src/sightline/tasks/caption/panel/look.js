// One model's look at a picture: the frame, the caption, the other sentences, and files to save.

import { sureness } from '../../about.js';
import { make, scoreOf } from '../../dom.js';
import { Frame } from '../../frame.js';
import { lightAt, smoothMap } from '../../heat.js';
import { isCalm } from '../../pace.js';
import { save } from '../../save.js';
import { Words } from '../../words.js';

const BEAT = 620; // milliseconds that the light rests on each word when it walks over them
const SEEN = 0.5; // a word looked at a place if the place is at least this light

export class Look {
  /** `panel`: {announce, showError, onBox(box), onShow(sentence)}. */
  constructor(template, panel) {
    this.panel = panel;
    this.element = template.content.firstElementChild.cloneNode(true);
    this.find = (selector) => this.element.querySelector(selector);
    this.caption = new Words(this.find('.caption'), (i) => this.showWord(i));
    this.frame = new Frame(this.find('.frame'), {
      onPlace: (place) => this.showPlace(place),
      onBox: panel.onBox,
    });
    this.find('.play').addEventListener('click', () => (this.walking ? this.stop() : this.walk()));
    this.find('.point').hidden = !navigator.maxTouchPoints; // a mouse draws without it
    this.find('.whole').addEventListener('click', () => panel.onBox(null));
    this.find('.point').addEventListener('click', ({ currentTarget }) => {
      const pointing = currentTarget.ariaPressed !== 'true';
      currentTarget.ariaPressed = String(pointing);
      this.frame.setPointing(pointing);
      this.element.classList.toggle('pointing', pointing);
    });
    this.find('.caption').addEventListener('pointerdown', () => this.showPlace(null));
    for (const button of this.element.querySelectorAll('.save button'))
      button.addEventListener('click', () => this.save(button));
    for (const part of [this.find('.caption'), this.find('.frame')])
      for (const kind of ['pointerenter', 'pointerdown', 'keydown'])
        part.addEventListener(kind, () => this.stop());
  }

  async setPicture(picture) {
    this.stop();
    this.picture = picture;
    this.clear();
    const shown = await this.frame.setPicture(picture.url, picture.alt);
    this.find('.unseen').hidden = shown;
    for (const kind of ['png', 'gif']) this.find(`[data-kind=${kind}]`).hidden = !shown;
  }

  setBox(box) {
    this.frame.setBox(box);
    this.find('.whole').hidden = !box;
  }

  // ---------------------------------------------------------------- an answer, as it comes

  /** Before an answer: the last one fades, and stays readable. */
  begin() {
    this.stop();
    this.element.classList.add('busy');
    this.element.ariaBusy = 'true';
    this.frame.dim();
  }

  end() {
    this.element.classList.remove('busy');
    this.element.ariaBusy = 'false';
  }

  clear() {
    this.answer = null;
    this.caption.write([]);
    this.frame.dim();
    this.find('.readout').textContent = '';
    for (const name of ['.others', '.save', '.before', '.tags', '.confidence']) this.find(name).hidden = true;
    this.find('.play').disabled = true;
  }

  step({ tokens }) {
    this.element.classList.remove('busy');
    this.caption.write(tokens);
  }

  /** `before`: the caption without the box, if there is a box. */
  finish(answer, { prefix, before }) {
    this.answer = answer;
    this.prefix = prefix;
    const whole = this.find('.before');
    whole.hidden = !before;
    whole.textContent = before ? `Looking everywhere, it said: ${before}` : '';
    const [rows, columns] = answer.layout?.shape ?? [8, 8];
    this.frame.grid = [rows, columns];
    if (!this.frame.picture.naturalWidth) this.frame.size(answer.width, answer.height);
    this.listOthers([answer, ...answer.alternatives]);
    this.find('.save').hidden = false;
    this.showSentence(answer);
  }

  showSentence(sentence) {
    this.stop();
    this.sentence = sentence;
    const { layout, attention, tokens } = sentence;
    this.maps = attention && layout?.kind === 'grid'
      ? attention.map((weights) => smoothMap(weights.slice(0, layout.shape[0] * layout.shape[1]), layout.shape))
      : null;
    this.showTags(layout?.labels ?? [], tokens);
    this.caption.write(tokens, givenWords(tokens, this.prefix));
    this.caption.label(sentence.log_probs.map(Math.exp), this.maps?.map(placeOf));
    this.find('.play').disabled = !this.maps;
    this.find('.readout').textContent = this.maps
      ? ''
      : 'This model does not attend: it reads the picture as a whole.';
    const sure = sureness(sentence, 'sentences');
    this.find('.confidence').hidden = !sure;
    this.find('.confidence').textContent = sure;
    this.caption.update({});
    for (const item of this.find('.others ol').children)
      item.firstElementChild.ariaPressed = String(item.sentence === sentence);
    this.panel.onShow(sentence);
  }

  /** Words that the picture may be about; those that the sentence took stand out. */
  showTags(labels, tokens) {
    const tags = this.find('.tags');
    tags.hidden = !labels.length;
    const words = labels.flatMap((word) => [
      make(tokens.includes(word) ? 'mark' : 'span', {}, word), ' ',
    ]);
    tags.replaceChildren('It recognised: ', ...words);
  }

  listOthers(sentences) {
    this.find('.others').hidden = sentences.length < 2;
    const items = sentences.map((sentence) => {
      const button = make('button', { type: 'button' }, make('span', {}, sentence.text), ' ', scoreOf(sentence));
      button.addEventListener('click', () => {
        this.showSentence(sentence);
        if (!isCalm()) this.walk();
      });
      return make('li', { sentence }, button);
    });
    this.find('.others ol').replaceChildren(...items);
  }

  // ---------------------------------------------------------------- where it looked

  box() {
    return this.answer.visible_box ?? [0, 0, 1, 1];
  }

  showWord(index) {
    if (!this.maps) return;
    if (index === null || !this.maps[index]) {
      this.frame.dim();
      this.find('.readout').textContent = '';
      return;
    }
    this.frame.show(this.maps[index], this.box());
    const sure = Math.round(100 * Math.exp(this.sentence.log_probs[index]));
    this.find('.readout').textContent =
      `“${this.sentence.tokens[index]}” · ${sure} % sure · looked at the ${placeOf(this.maps[index])}`;
  }

  /** Which words looked at the place under the pointer. */
  showPlace(place) {
    const seen = place && this.maps && this.inside(place);
    const values = seen && this.maps.map((map) => lightAt(map, seen.x, seen.y));
    this.caption.shade(values && shades(values));
    const words = (values ?? [])
      .map((value, i) => ({ value, word: this.sentence.tokens[i] }))
      .filter(({ value }) => value >= SEEN)
      .sort((a, b) => b.value - a.value)
      .map(({ word }) => word);
    const text = [...new Set(words)].slice(0, 3).join(' · ');
    this.frame.hint(text, place);
    if (!place?.keys) return;
    const box = place.cells ? `Box of ${place.cells.join(' by ')}. ` : '';
    this.panel.announce(box + (text ? `Here looked: ${text}` : 'No word looked here'));
  }

  /** A place in the picture as a place in what the model saw of it, or null. */
  inside({ x, y }) {
    const [left, top, right, bottom] = this.box();
    const seen = { x: (x - left) / (right - left), y: (y - top) / (bottom - top) };
    return seen.x >= 0 && seen.x <= 1 && seen.y >= 0 && seen.y <= 1 ? seen : null;
  }

  // ---------------------------------------------------------------- the light walks over the words

  walk() {
    if (!this.maps) return;
    this.stop();
    this.find('.play').textContent = 'Stop';
    let index = 0;
    const next = () => {
      if (index >= this.caption.words.length) return this.stop();
      this.caption.show(index++);
      this.walking = setTimeout(next, BEAT);
    };
    this.walking = setTimeout(next, 0);
  }

  stop() {
    if (!this.walking) return;
    clearTimeout(this.walking);
    this.walking = 0;
    this.find('.play').textContent = 'Watch it look';
    this.caption.update({});
  }

  async save(button) {
    button.disabled = true;
    try {
      await save(button.dataset.kind, { ...this, box: this.box(), image: this.frame.picture });
    } catch (error) {
      this.panel.showError(error);
    } finally {
      button.disabled = false;
    }
  }
}

/** Each word's lightness at one place as a shade; the words that looked there most stand out. */
function shades(values) {
  const most = Math.max(...values);
  return values.map((value) => (Math.max(0, (value - 0.3) / 0.7) * (value / most) ** 4).toFixed(3));
}

/** How many of the first words are the user's. */
function givenWords(tokens, prefix) {
  const words = prefix.toLowerCase().split(/\s+/).filter(Boolean);
  let same = 0;
  while (same < words.length && tokens[same] === words[same]) same++;
  return same;
}

/** Where a map is lightest, in words. */
function placeOf(map) {
  let best = 0;
  for (let i = 1; i < map.values.length; i++) if (map.values[i] > map.values[best]) best = i;
  const third = (value) => Math.min(2, Math.floor(3 * value));
  const row = third(Math.floor(best / map.width) / map.height);
  const column = third((best % map.width) / map.width);
  if (row === 1) return ['left', 'centre', 'right'][column];
  return ['top', '', 'bottom'][row] + [' left', '', ' right'][column];
}
