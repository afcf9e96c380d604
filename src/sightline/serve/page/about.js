// A model in plain words: what its card says that it does, and above all what it cannot do.

import { make } from './dom.js';

const SHOWN = { score: 'How well', data: 'Learned from', terms: 'Terms' }; // facts below the limits
const SURE = [[0.75, 'Quite sure'], [0.5, 'Fairly sure'], [0.25, 'Not sure'], [0, 'A guess']];

/** A folded part of the page about a model, as /v1/models describes it. */
export function about({ name, description, card, about: more }) {
  const limits = card?.facts.limits ?? more?.limits;
  const facts = Object.entries(SHOWN)
    .filter(([key]) => card?.facts[key])
    .map(([key, title]) => make('p', {}, make('b', {}, `${title}. `), card.facts[key]));
  return make(
    'details',
    { className: 'about' },
    make('summary', {}, 'What this model can and cannot do'),
    make('p', {}, make('b', {}, name), ` · ${card?.summary || description || 'It has no description.'}`),
    make('p', {}, make('b', {}, 'Limits. '), limits ?? 'None are written down for it: test it on what you know first.'),
    ...facts,
  );
}

/** How sure a model is of an answer, in words and as a number; '' if it was not calibrated. */
export function sureness({ confidence }, what) {
  if (typeof confidence !== 'number') return '';
  const [, words] = SURE.find(([least]) => confidence >= least);
  return `${words}: ${Math.round(100 * confidence)} of 100 ${what} like this one are right.`;
}
