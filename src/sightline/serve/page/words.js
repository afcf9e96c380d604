// A sentence as words that can be hovered over, focused, moved over with arrow keys, and pinned.

import { make, rove } from './dom.js';

export class Words {
  /** `onWord(i)` is called with the word to highlight, or null. */
  constructor(element, onWord) {
    this.element = element;
    this.onWord = onWord;
    this.words = [];
    this.hovered = this.focused = this.pinned = null;
    element.addEventListener('keydown', (event) => this.onKey(event));
    element.addEventListener('pointerleave', () => this.update({ hovered: null }));
    element.addEventListener('focusout', () => this.update({ focused: null }));
  }

  /** Words that were there before are kept, so that only new ones appear. */
  write(tokens, given = 0) {
    let same = 0;
    while (same < this.words.length && this.words[same].dataset.token === tokens[same]) same++;
    for (const word of this.words.splice(same)) {
      word.nextSibling.remove(); // the blank after it
      word.remove();
    }
    for (const token of tokens.slice(same)) this.add(token);
    this.words.forEach((word, i) => {
      word.classList.toggle('given', i < given);
      word.ariaPressed = null;
      word.tabIndex = i === 0 ? 0 : -1;
    });
    this.hovered = this.pinned = null;
    if (!this.words.includes(document.activeElement)) this.focused = null; // it may be gone
  }

  add(token) {
    const index = this.words.length;
    const bar = make('span', { className: 'sure' });
    const word = make('button', { type: 'button', className: 'word' }, token, bar);
    word.dataset.token = token;
    word.addEventListener('pointerenter', (event) => {
      if (event.pointerType === 'mouse') this.update({ hovered: index });
    });
    word.addEventListener('focus', () => this.update({ focused: index }));
    word.addEventListener('click', () => this.pin(this.pinned === index ? null : index));
    this.words.push(word);
    this.element.append(word, ' ');
  }

  /** Probabilities and, if the model attended, places: what is known once all words are there. */
  label(probabilities, places) {
    this.words.forEach((word, i) => {
      word.style.setProperty('--sure', probabilities[i].toFixed(3));
      const percent = Math.round(100 * probabilities[i]);
      const looked = places ? `, looked at the ${places[i]}` : '';
      word.ariaLabel = `${word.dataset.token}, ${percent} percent sure${looked}`;
    });
  }

  pin(index) {
    for (const [i, word] of this.words.entries()) word.ariaPressed = i === index ? 'true' : null;
    this.update({ pinned: index });
  }

  /** The hovered word comes first, then the focused one, then the pinned one. */
  update(change) {
    Object.assign(this, change);
    this.show(this.hovered ?? this.focused ?? this.pinned);
  }

  show(index) {
    this.words.forEach((word, i) => word.classList.toggle('lit', i === index));
    this.onWord(index);
  }

  /** Shade each word by a value in [0, 1]: how much it looked at the place under the pointer. */
  shade(values) {
    this.words.forEach((word, i) => word.style.setProperty('--looked', values ? values[i] : 0));
  }

  onKey(event) {
    if (event.key === 'Escape') this.pin(null);
    if (rove(this.words, event)) this.update({ hovered: null });
  }
}
