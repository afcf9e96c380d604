// The panel for pictures: the photo, the settings, the requests, and one or two looks at the photo.

import { about } from '../../about.js';
import { getJson } from '../../api.js';
import { count } from '../../dom.js';
import { isCalm } from '../../pace.js';
import { linkButton } from '../../panel.js';
import { Tree } from '../../tree.js';
import { listSamples, listenForPhotos } from './choose.js';
import { Look } from './look.js';

const BEAMS = [1, 2, 3, 5, 8, 10, 15, 20];

export const title = 'Pictures';
export const mount = (root, page) => new Pictures(root, page).start();

class Pictures {
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    [this.model] = page.models;
    this.beam = this.model.beam;
    this.groups = 1;
    this.repeats = false;
    this.prefix = '';
    this.photo = this.box = null;
    this.looks = [];
    this.isCompared = false;
    this.running = new AbortController();
    this.tree = new Tree(this.find('#tree'));
    this.listenToControls();
    listenForPhotos(root, (photo) => this.setPhoto(photo), page.showMessage);
  }

  async start() {
    await this.listSamples();
    if (this.page.state) this.restore(this.page.state);
  }

  // ---------------------------------------------------------------- links

  /** All but a photo of the user's own, which no link can carry. */
  state() {
    const { model, beam, groups, repeats, prefix, box, photo, isCompared } = this;
    const set = { model: model.name, beam, groups: groups > 1 ? groups : '', prefix, sample: photo?.sample };
    const marks = { repeats: repeats && 1, compare: isCompared && 1 };
    const marked = Object.entries(marks).filter(([, is]) => is);
    return { ...set, box: box?.map((x) => x.toFixed(4)).join(','), ...Object.fromEntries(marked) };
  }

  restore({ model, beam, groups, prefix = '', box, sample, repeats, compare }) {
    const found = this.page.models.find(({ name }) => name === model) ?? this.model;
    this.setModel(found);
    if ([...this.find('#beam').options].some(({ value }) => value === beam)) this.beam = Number(beam);
    this.groups = Number(groups) || 1;
    this.listGroups();
    this.prefix = prefix.slice(0, 200);
    this.repeats = Boolean(repeats);
    this.isCompared = Boolean(compare);
    this.find('#model').value = found.name;
    this.find('#beam').value = this.beam;
    this.find('#prefix').value = this.prefix;
    this.find('#repeats').checked = this.repeats;
    this.find('#compare').checked = this.isCompared;
    const place = box?.split(',').map(Number);
    const isBox = place?.length === 4 && place.every((x) => x >= 0 && x <= 1);
    this.linkedBox = isBox ? place : null;
    const button = [...this.root.querySelectorAll('[data-sample]')].find((one) => one.dataset.sample === sample);
    button?.click();
  }

  setModel(model) {
    this.model = model;
    this.find('#about').replaceChildren(about(model));
  }

  async listSamples() {
    const { samples } = await getJson('v1/samples').catch(() => ({ samples: [] }));
    listSamples(this.root, samples, (photo) => this.setPhoto(photo), this.page.showError);
  }

  // ---------------------------------------------------------------- settings

  listenToControls() {
    const { models } = this.page;
    const [model, beam, compare, groups, repeats] =
      ['#model', '#beam', '#compare', '#groups', '#repeats'].map(this.find);
    for (const { name } of models) model.add(new Option(name));
    this.find('#model-label').hidden = models.length < 2;
    const sizes = [...new Set([...BEAMS, this.beam])].sort((a, b) => a - b);
    for (const size of sizes) beam.add(new Option(size));
    beam.value = this.beam;
    model.addEventListener('change', () => {
      this.setModel(models[model.selectedIndex]);
      this.change({});
    });
    this.setModel(this.model);
    this.find('#link-place').append(
      linkButton('link', () => this.page.link(this.state()), (text) => {
        const isOwn = this.photo && !this.photo.sample;
        this.page.announce(isOwn ? `${text}, without the photo: the server does not keep it` : text);
      }),
    );
    this.listGroups();
    beam.addEventListener('change', () => {
      this.beam = Number(beam.value);
      this.listGroups();
      this.change({});
    });
    groups.addEventListener('change', () => this.change({ groups: Number(groups.value) }));
    repeats.addEventListener('change', () => this.change({ repeats: repeats.checked }));
    compare.addEventListener('change', () => this.change({ isCompared: compare.checked }));
    this.find('#prefix-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.change({ prefix: this.find('#prefix').value.trim() });
    });
  }

  /** A beam can be searched in groups of equal size. */
  listGroups() {
    const sizes = Array.from({ length: this.beam }, (_, i) => i + 1);
    const divisors = sizes.filter((size) => this.beam % size === 0);
    if (!divisors.includes(this.groups)) this.groups = 1;
    this.find('#groups').replaceChildren(...divisors.map((size) => new Option(size)));
    this.find('#groups').value = this.groups;
  }

  change(settings) {
    Object.assign(this, settings);
    if (this.photo) this.run();
  }

  setBox(box) {
    for (const look of this.looks) look.setBox(box);
    if (box || this.box) this.change({ box });
  }

  async setPhoto(photo) {
    if (this.photo) URL.revokeObjectURL(this.photo.url);
    this.photo = { ...photo, url: URL.createObjectURL(photo.blob) };
    this.box = this.linkedBox ?? null; // that of a link is for the photo that comes with it
    this.linkedBox = null;
    this.page.show();
    this.setWorking(true);
    scrollTo({ top: 0 });
    const described = this.run();
    this.looks[0].frame.element.focus({ preventScroll: true }); // Tab continues from the picture
    await described;
  }

  setWorking(isWorking) {
    this.root.classList.toggle('working', isWorking);
    this.find('#welcome').hidden = isWorking;
    this.find('#work').hidden = !isWorking;
    this.find('#pick').textContent = isWorking ? 'Another photo' : 'Choose a photo';
  }

  // ---------------------------------------------------------------- looks

  listLooks() {
    const { looks } = this;
    const other = this.counterpart();
    this.isCompared &&= Boolean(other);
    const models = this.isCompared ? [this.model, other] : [this.model];
    while (looks.length > models.length) looks.pop().element.remove();
    while (looks.length < models.length) looks.push(this.newLook());
    this.find('#looks').classList.toggle('pair', this.isCompared);
    looks.forEach((look, i) => {
      look.model = models[i];
      const kind = look.find('.kind');
      kind.hidden = !this.isCompared;
      kind.textContent = `${look.model.attention === 'hard' ? 'Hard' : 'Soft'} attention · ${look.model.name}`;
    });
    this.find('#compare-label').hidden = !other;
    this.placeControls();
  }

  newLook() {
    const { announce, showError } = this.page;
    const look = new Look(this.find('#look'), {
      announce,
      showError,
      onBox: (box) => this.setBox(box),
      onShow: (sentence) => look === this.looks[0] && this.showPath(sentence),
    });
    this.find('#looks').append(look.element);
    return look;
  }

  /** A model with the other kind of attention, if there is one. */
  counterpart() {
    const wanted = { soft: 'hard', hard: 'soft' }[this.model.attention];
    return this.page.models.find(({ attention }) => attention === wanted);
  }

  /** The controls are next to one picture, but below two. */
  placeControls() {
    const controls = this.find('#controls');
    const next = this.isCompared ? this.find('#search') : this.looks[0].find('.others');
    if (controls.nextElementSibling === next) return;
    const focused = document.activeElement; // an element that moves loses the focus
    next.before(controls);
    focused.focus();
  }

  // ---------------------------------------------------------------- describing

  /** Write the caption, again if there is one, with each look's model. */
  async run() {
    this.running.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.page.showMessage('');
    this.listLooks();
    this.tree.clear();
    this.find('#search').hidden = false;
    await Promise.all(this.looks.map((look) => this.runLook(look, signal)));
    if (!signal.aborted && this.looks.every((look) => !look.answer)) this.giveUp();
  }

  async runLook(look, signal) {
    const { photo, box, prefix, beam, groups, repeats, looks } = this;
    if (look.picture !== photo) await look.setPicture(photo);
    if (signal.aborted) return;
    look.setBox(box);
    look.begin();
    const onStep = (step) => {
      look.step(step);
      if (look === looks[0]) this.tree.grow(step);
    };
    const focus = box ? box.map((value) => value.toFixed(4)).join(',') : '';
    const fields = { file: photo.blob, beam, groups, repeats, prefix, focus };
    try {
      const answer = await this.page.describe(look.model, fields, { signal, onStep });
      if (!box) look.unboxed = answer.text;
      look.finish(answer, { prefix, before: box ? look.unboxed : null });
      const whose = looks.length > 1 ? ` of ${look.model.name}` : '';
      this.page.announce(`Caption${whose}: ${answer.text}`);
      if (!isCalm()) look.walk();
    } catch (error) {
      if (signal.aborted) return;
      this.page.showError(error);
      this.prefix = look.prefix ?? ''; // words that cannot be used are not sent again
    } finally {
      if (!signal.aborted) look.end();
    }
  }

  /** A photo that cannot be described leaves the page as it was at first. */
  giveUp() {
    const hadFocus = this.find('#work').contains(document.activeElement);
    this.setWorking(false);
    if (hadFocus) this.find('#pick').focus({ preventScroll: true });
  }

  /** The first look shows another of its sentences: the tree highlights that path. */
  showPath({ tokens, text }) {
    this.tree.light(tokens);
    const { size } = this.tree.nodes;
    this.tree.settle(`The search as a tree. It kept ${count(size, 'word')} on the way to: ${text}`);
    this.find('#search').hidden = !size;
  }
}
