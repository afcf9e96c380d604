// A caption as words that can be hovered, focused, arrowed over and pinned.

export class Caption {
  /** `onWord(i)` is called with the word to light, or null. */
  constructor(element, onWord) {
    this.element = element;
    this.onWord = onWord;
    this.words = [];
    this.hovered = this.focused = this.pinned = this.shown = null;
    element.addEventListener('keydown', (event) => this.onKey(event));
    element.addEventListener('pointerleave', () => this.update({ hovered: null }));
    element.addEventListener('focusout', () => this.update({ focused: null }));
  }

  /** Words as they come: those that stay are kept, so that only new ones appear. */
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
    const word = document.createElement('button');
    word.type = 'button';
    word.className = 'word';
    word.dataset.token = token;
    const bar = document.createElement('span');
    bar.className = 'sure';
    word.append(token, bar);
    word.addEventListener('pointerenter', (event) => {
      if (event.pointerType === 'mouse') this.update({ hovered: index });
    });
    word.addEventListener('focus', () => this.update({ focused: index }));
    word.addEventListener('click', () => this.pin(this.pinned === index ? null : index));
    this.words.push(word);
    this.element.append(word, ' ');
  }

  /** What is known of the words once they are all there: how sure, and where it looked. */
  tell(sure, places) {
    this.words.forEach((word, i) => {
      word.style.setProperty('--sure', sure[i].toFixed(3));
      const looked = places ? `, looked at the ${places[i]}` : '';
      word.ariaLabel = `${word.dataset.token}, ${Math.round(100 * sure[i])} percent sure${looked}`;
    });
  }

  pin(index) {
    for (const [i, word] of this.words.entries()) word.ariaPressed = i === index ? 'true' : null;
    this.update({ pinned: index });
  }

  /** The word that the pointer is on counts most, then the focused one, then the pinned one. */
  update(change) {
    Object.assign(this, change);
    this.show(this.hovered ?? this.focused ?? this.pinned);
  }

  show(index) {
    this.shown = index;
    this.words.forEach((word, i) => word.classList.toggle('lit', i === index));
    this.onWord(index);
  }

  /** How much each word looked at the place under the pointer, in [0, 1]; null: at none. */
  looked(values) {
    this.words.forEach((word, i) => word.style.setProperty('--looked', values ? values[i] : 0));
  }

  onKey(event) {
    const at = this.words.indexOf(document.activeElement);
    const last = this.words.length - 1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (event.key === 'Escape') this.pin(null);
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = this.words[Math.min(last, Math.max(0, to))];
    for (const word of this.words) word.tabIndex = word === next ? 0 : -1;
    this.hovered = null;
    next.focus();
  }
}
