// The page: it holds the photo and the settings, asks the service, and gives answers to the looks.

import { Trouble, describe, getJson, useKey } from './api.js';
import { listSamples, listenForPhotos } from './choose.js';
import { Look } from './look.js';
import { Pace, isCalm } from './pace.js';
import { Translation } from './translate.js';
import { Tree } from './tree.js';

const MOST = 6; // sentences of the beam that are listed
const BEAMS = [1, 2, 3, 5, 8, 10, 15, 20];

const element = (id) => document.getElementById(id);
const state = { models: [], photo: null, model: null, beam: 5, prefix: '', box: null, compare: false };
const tree = new Tree(element('tree'));
let looks = [];
let running = new AbortController();

// ---------------------------------------------------------------- telling the user

function tell(text, kind = 'trouble') {
  const message = element('message');
  message.hidden = !text;
  message.className = `message ${kind}`;
  message.textContent = text;
}

function announce(text) {
  element('live').textContent = text;
}

function onTrouble(error) {
  if (!(error instanceof Trouble)) console.error(error);
  tell(error instanceof Trouble ? error.message : 'Something went wrong on this page. Please try again.');
}

function onWait(seconds) {
  tell(`The server is busy. Trying again in ${seconds} s …`, 'wait');
}

// ---------------------------------------------------------------- describing

function listLooks() {
  const other = counterpart();
  state.compare &&= Boolean(other);
  const wanted = state.compare ? 2 : 1;
  while (looks.length > wanted) looks.pop().element.remove();
  while (looks.length < wanted) looks.push(newLook());
  element('looks').classList.toggle('pair', state.compare);
  looks.forEach((look, i) => {
    const model = state.models.find(({ name }) => name === (i ? other.name : state.model));
    look.model = model.name;
    const kind = look.find('.kind');
    kind.hidden = !state.compare;
    kind.textContent = `${model.attention === 'hard' ? 'Hard' : 'Soft'} attention · ${model.name}`;
  });
  element('compare-label').hidden = !other;
  placeControls();
}

/** The controls stand beside one picture, but under two. */
function placeControls() {
  const controls = element('controls');
  const before = state.compare ? element('search') : looks[0].find('.others');
  if (controls.nextElementSibling === before) return;
  const focused = document.activeElement; // which an element that moves would lose
  before.before(controls);
  focused.focus();
}

/** A model of the other kind of attention, if there is one. */
function counterpart() {
  const mine = state.models.find(({ name }) => name === state.model);
  const wanted = { soft: 'hard', hard: 'soft' }[mine?.attention];
  return state.models.find(({ attention }) => attention === wanted);
}

function newLook() {
  const look = new Look({ onBox: setBox, announce, onShow, onTrouble });
  element('looks').append(look.element);
  return look;
}

function listenToControls() {
  const [model, beam, compare] = ['model', 'beam', 'compare'].map(element);
  for (const { name } of state.models) model.add(new Option(name, name));
  model.value = state.model;
  element('model-label').hidden = state.models.length < 2;
  const sizes = [...new Set([...BEAMS, state.beam])].sort((a, b) => a - b);
  for (const size of sizes) beam.add(new Option(size, size));
  beam.value = state.beam;
  model.addEventListener('change', () => change({ model: model.value }));
  beam.addEventListener('change', () => change({ beam: Number(beam.value) }));
  compare.addEventListener('change', () => change({ compare: compare.checked }));
  element('prefix-form').addEventListener('submit', (event) => {
    event.preventDefault();
    change({ prefix: element('prefix').value.trim() });
  });
}

function change(changes) {
  Object.assign(state, changes);
  if (state.photo) run();
}

function setBox(box) {
  for (const look of looks) {
    look.frame.setBox(box);
    look.find('.whole').hidden = !box;
  }
  if (box || state.box) change({ box });
}

async function setPhoto(photo) {
  if (state.photo) URL.revokeObjectURL(state.photo.url);
  state.photo = { ...photo, url: URL.createObjectURL(photo.blob) };
  state.box = null;
  showTab('picture');
  element('welcome').hidden = true;
  element('work').hidden = false;
  document.body.classList.add('working');
  element('pick').textContent = 'Another photo';
  scrollTo({ top: 0 });
  const described = run(true);
  looks[0].frame.element.focus({ preventScroll: true }); // the next Tab goes on from the picture
  await described;
}

/** Write the caption (again), with every look's own model. */
async function run(isNew = false) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  tell('');
  listLooks();
  tree.clear();
  element('search').hidden = false;
  await Promise.all(looks.map((look) => runLook(look, isNew, signal)));
  if (!signal.aborted && looks.every((look) => !look.answer)) giveUp();
}

async function runLook(look, isNew, signal) {
  const { photo, box, prefix } = state;
  if (isNew || look.picture !== photo) await look.setPicture(photo);
  if (signal.aborted) return;
  look.frame.setBox(box);
  look.find('.whole').hidden = !box;
  look.begin();
  const pace = new Pace((step) => {
    look.step(step);
    if (look === looks[0]) tree.grow(step);
  }, signal);
  try {
    const answer = await describe('v1/describe', () => formOf(look.model), {
      signal,
      onStep: (step) => pace.add(step),
      onWait,
    });
    await pace.drained();
    if (signal.aborted) return;
    if (element('message').matches('.wait')) tell(''); // another look's trouble stays
    if (!box) look.unboxed = answer.text;
    look.finish(answer, { prefix, before: box ? look.unboxed : null });
    announce(`Caption${looks.length > 1 ? ` of ${look.model}` : ''}: ${answer.text}`);
    if (!isCalm()) look.walk();
  } catch (error) {
    if (signal.aborted) return;
    onTrouble(error);
    state.prefix = look.prefix ?? ''; // if the words were the trouble, they are not tried again
  } finally {
    if (!signal.aborted) look.end();
  }
}

/** A photo that cannot be described leaves the page as it was at first. */
function giveUp() {
  const hadFocus = element('work').contains(document.activeElement);
  element('welcome').hidden = false;
  element('work').hidden = true;
  document.body.classList.remove('working');
  element('pick').textContent = 'Choose a photo';
  if (hadFocus) element('pick').focus({ preventScroll: true });
}

function formOf(model) {
  const form = new FormData();
  form.set('file', state.photo.blob, state.photo.name);
  form.set('model', model);
  form.set('beam', state.beam);
  form.set('n_best', Math.min(state.beam, MOST));
  form.set('stream', 'true');
  if (state.prefix) form.set('prefix', state.prefix);
  if (state.box) form.set('focus', state.box.map((value) => value.toFixed(4)).join(','));
  return form;
}

/** A look shows another of its sentences: the tree lights that path. */
function onShow(look, sentence) {
  if (look !== looks[0]) return;
  tree.light(sentence.tokens);
  tree.settle(`The search as a tree. ${tree.nodes.size} words were kept on the way to: ${sentence.text}`);
  element('search').hidden = !tree.nodes.size;
}

// ---------------------------------------------------------------- tabs

function showTab(name) {
  for (const one of ['picture', 'translate']) {
    const chosen = one === name;
    element(`tab-${one}`).ariaSelected = String(chosen);
    element(`tab-${one}`).tabIndex = chosen ? 0 : -1;
    element(`panel-${one}`).hidden = !chosen;
  }
}

function listenToTabs() {
  element('tabs').hidden = false;
  for (const name of ['picture', 'translate'])
    element(`tab-${name}`).addEventListener('click', () => {
      tell('');
      showTab(name);
    });
  element('tabs').addEventListener('keydown', (event) => {
    if (!['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
    const other = document.activeElement.id === 'tab-picture' ? 'translate' : 'picture';
    element(`tab-${other}`).click();
    element(`tab-${other}`).focus();
  });
}

// ---------------------------------------------------------------- the beginning

async function begin() {
  const { models } = await getJson('v1/models');
  state.models = models.filter(({ task }) => task === 'caption');
  const translators = models.filter(({ task }) => task === 'translate');
  const first = state.models.find((model) => model.default) ?? state.models[0];
  if (translators.length) {
    new Translation({ models: translators, announce, onTrouble, onWait, onCalm: () => tell('') });
    if (first) listenToTabs();
    else showTab('translate');
  }
  if (!first) {
    element('choose').hidden = true;
    if (!translators.length) tell('This server has no model that this page can show.');
    return;
  }
  state.model = first.name;
  state.beam = first.beam ?? state.beam;
  listenToControls();
  listenForPhotos(setPhoto, tell);
  const { samples } = await getJson('v1/samples').catch(() => ({ samples: [] }));
  listSamples(samples, setPhoto, onTrouble);
}

/** A server may ask for a key before it says anything. */
function askForKey(error) {
  if (error.status !== 401) throw error;
  const form = element('key-form');
  form.hidden = false;
  element('choose').hidden = true;
  element('key').focus();
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    useKey(element('key').value);
    tell('');
    try {
      await begin();
      form.hidden = true;
      element('choose').hidden = !state.model;
    } catch (wrong) {
      onTrouble(wrong);
    }
  });
}

begin()
  .catch(askForKey)
  .catch(onTrouble)
  .finally(() => (document.body.dataset.ready = 'true'));
