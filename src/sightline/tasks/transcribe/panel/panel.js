// The panel for speech: record or choose a sound, see its parts appear, hear each of them alone.

import { about } from '../../about.js';
import { make } from '../../dom.js';
import { asJson, download } from '../../save.js';

export const title = 'Speech';
export const mount = (root, page) => void new Speech(root, page);

const RATE = 16000; // what is sent; any kind of file that the browser reads becomes this
const LONGEST = 120; // seconds

class Speech {
  constructor(root, page) {
    this.page = page;
    this.find = (selector) => root.querySelector(selector);
    this.find('#speech-record').addEventListener('click', () => this.record());
    this.find('#speech-file').addEventListener('change', ({ target }) => {
      if (target.files[0]) this.open(target.files[0]);
      target.value = '';
    });
    this.find('#speech-example').addEventListener('click', () => this.openExample());
    this.acceptDrops(this.find('#speech-drop'));
    this.find('#speech-json').addEventListener('click', () =>
      download('speech-sightline.json', asJson(this.answer)),
    );
    this.listModels(this.find('#speech-model'));
    new ResizeObserver(() => this.draw()).observe(this.find('#wave'));
  }

  listModels(select) {
    const { models } = this.page;
    for (const { name } of models) select.add(new Option(name));
    this.find('#speech-model-label').hidden = models.length < 2;
    const choose = () => {
      this.model = models[select.selectedIndex];
      this.find('#speech-note').textContent = this.model.description;
      this.find('#speech-about').replaceChildren(about(this.model));
    };
    select.addEventListener('change', choose);
    choose();
  }

  acceptDrops(place) {
    for (const kind of ['dragover', 'dragleave', 'drop'])
      place.addEventListener(kind, (event) => {
        event.preventDefault();
        event.stopPropagation();
        place.classList.toggle('over', kind === 'dragover');
        if (kind === 'drop' && event.dataTransfer.files[0]) this.open(event.dataTransfer.files[0]);
      });
  }

  // ---------------------------------------------------------------- sound in

  async record() {
    if (this.recorder) return this.recorder.stop();
    this.page.showMessage('');
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      return this.page.showMessage('The microphone cannot be used. Choose a sound file instead.');
    }
    const button = this.find('#speech-record');
    const parts = [];
    this.recorder = new MediaRecorder(stream);
    const late = setTimeout(() => this.recorder?.stop(), 1000 * LONGEST);
    this.recorder.ondataavailable = ({ data }) => parts.push(data);
    this.recorder.onstop = () => {
      clearTimeout(late);
      for (const track of stream.getTracks()) track.stop();
      button.textContent = 'Record';
      this.recorder = null;
      this.open(new Blob(parts));
    };
    this.recorder.start();
    button.textContent = 'Stop';
    this.page.announce('Recording');
  }

  async openExample() {
    const answer = await fetch('samples/hello.flac').catch(() => null);
    if (!answer?.ok) return this.page.showMessage('The example cannot be had.');
    await this.open(await answer.blob());
  }

  async open(file) {
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.page.showMessage('');
    this.find('#heard').hidden = true;
    try {
      this.samples = await samplesOf(file);
    } catch {
      return this.page.showMessage('This file has no sound that the browser can read.');
    }
    if (signal.aborted) return;
    if (this.samples.length > LONGEST * RATE)
      return this.page.showMessage(`The recording is longer than ${LONGEST} seconds.`);
    const wav = new File([asWav(this.samples)], 'sound.wav', { type: 'audio/wav' });
    const onStep = (step) => this.showTokens(step.tokens ?? []);
    this.answer = null;
    try {
      this.show(await this.page.describe(this.model, { file: wav }, { signal, onStep }));
    } catch (error) {
      if (!signal.aborted) this.page.showError(error);
    }
  }

  // ---------------------------------------------------------------- what was heard

  showTokens(tokens) {
    this.find('#heard').hidden = false;
    this.find('#phones').replaceChildren(...tokens.map((token) => make('span', {}, token)));
    this.draw();
  }

  show(answer) {
    this.answer = answer;
    this.find('#heard').hidden = false;
    const parts = answer.spans.map((span, number) => {
      const times = `${span.start.toFixed(2)} to ${span.end.toFixed(2)} s`;
      const button = make('button', { type: 'button', title: times }, span.text);
      button.addEventListener('pointerenter', () => this.hear(number));
      button.addEventListener('focus', () => this.draw(number));
      button.addEventListener('click', () => this.hear(number));
      return button;
    });
    this.find('#phones').replaceChildren(...(parts.length ? parts : ['Nobody speaks.']));
    this.draw();
    this.page.announce(answer.text || 'Nobody speaks.');
  }

  hear(number) {
    this.draw(number);
    const { start, end } = this.answer.spans[number];
    this.context ??= new AudioContext();
    const some = this.samples.slice(Math.floor(start * RATE), Math.ceil(end * RATE));
    if (!some.length) return;
    const buffer = this.context.createBuffer(1, some.length, RATE);
    buffer.copyToChannel(some, 0);
    this.playing?.stop();
    this.playing = this.context.createBufferSource();
    this.playing.buffer = buffer;
    this.playing.connect(this.context.destination);
    this.playing.start();
  }

  /** The wave; with a number, the part's time and, if tokens are the parts, where it was looked. */
  draw(number) {
    const canvas = this.find('#wave');
    if (!this.samples || !canvas.clientWidth) return;
    const scale = window.devicePixelRatio || 1;
    const width = (canvas.width = Math.round(canvas.clientWidth * scale));
    const height = (canvas.height = Math.round(canvas.clientHeight * scale));
    const pen = canvas.getContext('2d');
    const style = getComputedStyle(canvas);
    const at = (seconds) => (seconds * RATE * width) / this.samples.length;
    const span = this.answer?.spans[number];
    if (span) {
      pen.fillStyle = style.color;
      const { attention, layout, spans } = this.answer;
      const times = layout?.times ?? [];
      const row = attention && spans.length === attention.length ? attention[number] : [];
      const step = times.length > 1 ? times[1] - times[0] : 0;
      const peak = Math.max(1e-6, ...row);
      row.forEach((weight, i) => {
        pen.globalAlpha = (0.8 * weight) / peak;
        pen.fillRect(at(times[i] - step / 2), 0, at(step) + 1, height);
      });
      pen.globalAlpha = 1;
      pen.fillRect(at(span.start), height - 4 * scale, at(span.end - span.start), 4 * scale);
    }
    pen.fillStyle = getComputedStyle(document.body).color;
    const each = this.samples.length / width;
    for (let x = 0; x < width; x++) {
      let high = 0;
      const last = Math.min(this.samples.length, Math.ceil((x + 1) * each));
      for (let i = Math.floor(x * each); i < last; i++) high = Math.max(high, Math.abs(this.samples[i]));
      const size = Math.max(1, high * height * 0.9);
      pen.fillRect(x, (height - size) / 2, 1, size);
    }
  }
}

/** A file of any kind that the browser reads: one channel at 16 kHz. */
async function samplesOf(file) {
  const decoded = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  const mixed = new Float32Array(decoded.length); // at 16 kHz already
  for (let channel = 0; channel < decoded.numberOfChannels; channel++) {
    const one = decoded.getChannelData(channel);
    for (let i = 0; i < mixed.length; i++) mixed[i] += one[i] / decoded.numberOfChannels;
  }
  return mixed;
}

/** 16-bit WAV of samples in ±1. */
function asWav(samples) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const write = (at, text) => [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  write(0, 'RIFF');
  view.setUint32(4, 36 + 2 * samples.length, true);
  write(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE, true);
  view.setUint32(28, 2 * RATE, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, 'data');
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((value, i) => view.setInt16(44 + 2 * i, 32767 * Math.max(-1, Math.min(1, value)), true));
  return view.buffer;
}
