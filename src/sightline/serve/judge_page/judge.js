// One question after another; every answer is sent at once. The server knows what a judge has
// answered, so the page holds nothing but the judge's name and where they went back to.

import { make } from './dom.js';

const element = (id) => document.getElementById(id);

const KINDS = {
  m1: {
    title: 'Which caption describes the picture better?',
    text: 'Which of the two is better?',
    labels: ['First', 'Second'],
    choices: [['first', 'The first'], ['equal', 'They are equal'], ['second', 'The second']],
    keys: { ArrowLeft: 0, ArrowDown: 1, ArrowRight: 2 },
  },
  m2: {
    title: 'Who wrote this caption?',
    text: 'Who wrote this?',
    labels: [''],
    choices: [['person', 'A person'], ['machine', 'A machine']],
    keys: { ArrowLeft: 0, ArrowRight: 1 },
  },
};

let judge = new URLSearchParams(location.search).get('judge') ?? '';
let question = null; // what the server said last
let path = []; // numbers of the questions that were shown, to go back along
let began = 0;
let busy = false;

function showMessage(text) {
  element('message').hidden = !text;
  element('message').textContent = text;
}

async function ask(url, options) {
  const response = await fetch(url, options);
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(said.error?.message ?? `the server answered ${response.status}`);
  return said;
}

/** Run a request, one at a time; what fails can be tried again. */
async function attempt(request) {
  if (busy) return;
  busy = true;
  try {
    await request();
    showMessage('');
  } catch (error) {
    showMessage(`Not saved or not loaded: ${error.message}. Please try again.`);
  } finally {
    busy = false;
  }
}

const load = (at) =>
  ask(`v1/question?${new URLSearchParams({ judge, ...(at === undefined ? {} : { at }) })}`);

// ---------------------------------------------------------------- showing

function show(next) {
  question = next;
  element('enter').hidden = true;
  element('progress').hidden = false;
  element('counted').textContent = `${next.done} of ${next.total}`;
  Object.assign(element('bar'), { max: next.total, value: next.done });
  const isOver = next.at === null;
  element('end').hidden = !isOver;
  element('question').hidden = isOver;
  if (!isOver) showQuestion(next);
}

function showQuestion({ kind, captions, picture, text, answer, upcoming }) {
  const about = KINDS[kind];
  element('title').textContent = picture ? about.title : about.text;
  element('picture').hidden = !picture;
  element('text').hidden = Boolean(picture);
  element('text').textContent = text ?? '';
  if (picture) element('picture').src = picture;
  element('captions').replaceChildren(
    ...captions.map((caption, i) =>
      make('li', {}, ...(about.labels[i] ? [make('b', {}, about.labels[i])] : []), caption),
    ),
  );
  element('choices').replaceChildren(
    ...about.choices.map(([value, label], i) => {
      const button = make('button', { type: 'button' }, label, make('kbd', {}, String(i + 1)));
      button.dataset.answer = value;
      button.ariaPressed = String(value === answer);
      button.setAttribute('aria-keyshortcuts', String(i + 1));
      button.addEventListener('click', () => choose(value));
      return button;
    }),
  );
  element('keys').textContent = 'Keys: the numbers or arrows; Backspace for the previous one';
  element('back').disabled = path.length === 0;
  element('title').focus({ preventScroll: true }); // a screen reader says the new question
  began = performance.now();
  if (upcoming?.picture) new Image().src = upcoming.picture; // it is there when it is asked about
}

// ---------------------------------------------------------------- answering

const choose = (answer) =>
  attempt(async () => {
    const { at } = question;
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    const next = await ask('v1/answers', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ judge, at, answer, seconds }),
    });
    path.push(at);
    show(next);
  });

const back = () =>
  attempt(async () => {
    if (!path.length) return;
    const next = await load(path.at(-1));
    path.pop();
    show(next);
  });

element('back').addEventListener('click', back);
element('again').addEventListener('click', back);

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!question || event.target instanceof HTMLInputElement) return;
  if (event.key === 'Backspace') {
    event.preventDefault();
    back();
  } else if (question.at !== null) {
    const { keys, choices } = KINDS[question.kind];
    const choice = choices[keys[event.key] ?? Number(event.key) - 1];
    if (!choice) return;
    event.preventDefault();
    choose(choice[0]);
  }
});

// ---------------------------------------------------------------- the start

element('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  judge = element('name').value.trim();
  attempt(async () => {
    show(await load());
    history.replaceState(null, '', `?${new URLSearchParams({ judge })}`);
  });
});

if (judge) await attempt(async () => show(await load()));
if (!question) {
  element('enter').hidden = false;
  element('name').focus();
}
document.body.dataset.ready = '';
