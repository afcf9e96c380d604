// A picture: light on it, pointing at it, and drawing a box with mouse, finger or keys.

import { Light } from './heat.js';

const LEAST = 0.03; // a box smaller than this part of a side was a click

export class Frame {
  /** `onPlace({x, y} | null)`: the place under the pointer; `onBox([x, y, w, h] | null)`. */
  constructor(element, { onPlace, onBox }) {
    this.element = element;
    this.picture = element.querySelector('.picture');
    this.boxElement = element.querySelector('.box');
    this.cursorElement = element.querySelector('.cursor');
    this.hintElement = element.querySelector('.hint');
    this.light = new Light(element.querySelector('.heat'));
    this.onPlace = onPlace;
    this.onBox = onBox;
    this.grid = [8, 8]; // rows and columns that the arrow keys move by
    this.pointing = false; // whether a finger draws instead of scrolling
    this.cell = null; // {row, column} of the keyboard's cursor
    this.listen();
  }

  /** Resolves to whether the browser can show it. */
  setPicture(url, alt) {
    this.cell = null;
    this.setBox(null);
    this.showCursor();
    this.picture.alt = alt;
    this.element.ariaLabel =
      `${alt}. Arrow keys move over the picture and say which words ` +
      'looked there. Shift with arrow keys draws a box, Enter describes the picture again with it, ' +
      'Escape removes the box.';
    return new Promise((resolve) => {
      this.picture.onload = () => {
        this.size(this.picture.naturalWidth, this.picture.naturalHeight);
        resolve(true);
      };
      this.picture.onerror = () => resolve(false);
      this.picture.src = url;
    });
  }

  size(width, height) {
    this.element.style.setProperty('--aspect', (width / height).toFixed(4));
    this.light.resize(width, height);
  }

  setPointing(pointing) {
    this.pointing = pointing;
    this.element.classList.toggle('pointing', pointing);
  }

  /** The box that the answer is for. */
  setBox(box) {
    this.box = box;
    this.drawBox(box);
  }

  /** A box that is still being drawn. */
  drawBox(box) {
    this.drawn = box;
    this.boxElement.hidden = !box;
    if (box) place(this.boxElement, box);
  }

  show(map, visible) {
    this.element.classList.add('lit');
    this.light.show(map, visible);
  }

  dim() {
    this.element.classList.remove('lit');
    this.light.hide();
  }

  hint(text, place) {
    this.hintElement.hidden = !text;
    if (!text) return;
    this.hintElement.textContent = text;
    this.hintElement.style.left = `${100 * place.x}%`;
    this.hintElement.style.top = `${100 * place.y}%`;
    this.hintElement.classList.toggle('left', place.x > 0.6);
  }

  // ---------------------------------------------------------------- mouse and finger

  listen() {
    const { element } = this;
    let start = null;
    element.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      if (event.pointerType === 'touch' && !this.pointing) return this.onPlace(this.at(event));
      start = this.at(event);
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener('pointermove', (event) => {
      const here = this.at(event);
      if (!start) return event.pointerType === 'touch' || this.onPlace(here);
      const box = between(start, here);
      if (isBox(box)) {
        this.onPlace(null);
        this.drawBox(box);
      }
    });
    element.addEventListener('pointerup', (event) => {
      const box = start && between(start, this.at(event));
      start = null;
      if (box && isBox(box)) this.onBox(box);
      else if (box) this.drawBox(this.box);
    });
    element.addEventListener('pointercancel', () => {
      start = null;
      this.drawBox(this.box);
    });
    element.addEventListener('pointerleave', (event) => {
      if (!start && event.pointerType !== 'touch') this.onPlace(null); // a tap stays
    });
    element.addEventListener('dragstart', (event) => event.preventDefault());
    element.addEventListener('keydown', (event) => this.onKey(event));
    element.addEventListener('blur', () => {
      this.cell = null;
      this.drawBox(this.box);
      this.showCursor();
      this.onPlace(null);
    });
  }

  at(event) {
    const { left, top, width, height } = this.element.getBoundingClientRect();
    const inside = (value) => Math.min(1, Math.max(0, value));
    return { x: inside((event.clientX - left) / width), y: inside((event.clientY - top) / height) };
  }

  // ---------------------------------------------------------------- keys

  onKey(event) {
    const [rows, columns] = this.grid;
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === 'Enter' && this.drawn) this.onBox(this.drawn);
    if (event.key === 'Escape') {
      this.anchor = null;
      if (this.drawn) this.onBox(null);
    }
    if (!move) return;
    event.preventDefault();
    const cell = this.cell ?? { row: rows >> 1, column: columns >> 1 };
    if (!event.shiftKey) this.anchor = null;
    else this.anchor ??= cell;
    const stay = !this.cell && !event.shiftKey; // the first key shows where the cursor is
    this.cell = {
      row: Math.min(rows - 1, Math.max(0, cell.row + (stay ? 0 : move[0]))),
      column: Math.min(columns - 1, Math.max(0, cell.column + (stay ? 0 : move[1]))),
    };
    const box = this.anchor && this.cells(this.anchor, this.cell);
    if (box) this.drawBox(box);
    this.showCursor();
    this.onPlace({
      x: (this.cell.column + 0.5) / columns,
      y: (this.cell.row + 0.5) / rows,
      keys: true,
      cells: box && [Math.round(box[2] * columns), Math.round(box[3] * rows)],
    });
  }

  cells(a, b) {
    const [rows, columns] = this.grid;
    const top = Math.min(a.row, b.row);
    const left = Math.min(a.column, b.column);
    const height = Math.abs(a.row - b.row) + 1;
    const width = Math.abs(a.column - b.column) + 1;
    return [left / columns, top / rows, width / columns, height / rows];
  }

  showCursor() {
    this.cursorElement.hidden = !this.cell;
    if (this.cell) place(this.cursorElement, this.cells(this.cell, this.cell));
    else this.anchor = null;
  }
}

function between(a, b) {
  return [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.abs(a.x - b.x), Math.abs(a.y - b.y)];
}

function isBox([, , width, height]) {
  return width >= LEAST && height >= LEAST;
}

function place(element, [x, y, width, height]) {
  Object.assign(element.style, {
    left: `${100 * x}%`,
    top: `${100 * y}%`,
    width: `${100 * width}%`,
    height: `${100 * height}%`,
  });
}
