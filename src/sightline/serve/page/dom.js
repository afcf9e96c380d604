// Small helpers for elements.

/** A new element with these properties and children. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** 1 point, 2 points. */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Weights as shades in [0, 1]: the greatest is 1, but weights that are nearly even stay pale. */
export function shades(weights) {
  const most = Math.max(...weights, 2 / weights.length);
  return weights.map((weight) => (weight / most).toFixed(4));
}

/** A sentence's score, as it is shown after the sentence. */
export function scoreOf({ score }) {
  const text = score.toFixed(2).replace('-', '−');
  return make('span', { className: 'score', ariaLabel: `score ${text}` }, text);
}

/** Move the focus within a group by arrow keys, Home and End; only the focused one is in the tab
 *  order. Returns whether the event was such a key. */
export function rove(group, event, keys = { ArrowRight: 1, ArrowLeft: -1 }) {
  const at = group.indexOf(document.activeElement);
  const last = group.length - 1;
  const to = { Home: 0, End: last }[event.key] ?? at + keys[event.key];
  if (at < 0 || Number.isNaN(to)) return false;
  event.preventDefault();
  const next = group[Math.min(last, Math.max(0, to))];
  for (const one of group) one.tabIndex = one === next ? 0 : -1;
  next.focus();
  return true;
}
