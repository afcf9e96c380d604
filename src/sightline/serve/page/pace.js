// Steps of a search, shown at a pace that an eye can follow.

import { sleep } from './api.js';

const BEAT = 110; // milliseconds per step
const LONGEST = 1800; // milliseconds for all waiting steps together

/** Whether the user prefers reduced motion. */
export function isCalm() {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

export class Pace {
  constructor(show, signal) {
    this.show = show;
    this.signal = signal;
    this.waiting = [];
    this.running = Promise.resolve();
    this.calm = isCalm();
  }

  add(step) {
    if (this.calm) return this.show(step);
    this.waiting.push(step);
    if (this.waiting.length === 1) this.running = this.run();
  }

  async run() {
    while (this.waiting.length && !this.signal.aborted) {
      this.show(this.waiting[0]);
      await sleep(Math.min(BEAT, LONGEST / this.waiting.length));
      this.waiting.shift();
    }
  }

  drained() {
    return this.running;
  }
}
