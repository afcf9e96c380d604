// Steps of a search shown at a pace that an eye can follow, however fast they come.

import { sleep } from './api.js';

const BEAT = 110; // milliseconds a step
const LONGEST = 1800; // that all the steps that wait may take together

/** Whether the user wishes for less motion. */
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
