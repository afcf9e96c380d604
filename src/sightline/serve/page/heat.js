// Attention over a grid as light on a picture (Xu et al. §5.4). The maps are those of the figures
// that `sightline describe --figure` draws; here less white is added, so that the picture keeps its
// colours where the model looked.

import { isCalm } from './pace.js';

const UPSAMPLE = 16; // pixels of the smooth map per cell of the grid
const SMOOTH = 20 / 224; // the Gaussian's σ as a part of the map's side, as in the paper
const DIM = 0.8; // opacity of the dark where the model did not look
const GLOW = 0.2; // opacity of the light where it looked most
const LAMP = [255, 247, 226]; // the light's colour, a little warm
const FADE = 0.7; // σ of the light's fall outside what the encoder saw, relative to SMOOTH
const SIDE = 224; // the longer side of the overlay, which the browser then scales smoothly
const MOVE = 180; // milliseconds from one word's light to the next

const spreads = new Map();

/** (16 n × n), row by row: bicubic upsampling and then the Gaussian, along one side. */
function spread(n) {
  if (spreads.has(n)) return spreads.get(n);
  const size = n * UPSAMPLE;
  const up = new Float64Array(size * n);
  for (let i = 0; i < size; i++) {
    const centre = (i + 0.5) / UPSAMPLE - 0.5;
    let total = 0;
    for (let j = 0; j < n; j++) total += up[i * n + j] = cubic(Math.abs(centre - j));
    for (let j = 0; j < n; j++) up[i * n + j] /= total;
  }
  const matrix = new Float64Array(size * n);
  for (let i = 0; i < size; i++) {
    let total = 0;
    for (let k = 0; k < size; k++) {
      const weight = Math.exp(-0.5 * ((i - k) / (SMOOTH * size)) ** 2);
      total += weight;
      for (let j = 0; j < n; j++) matrix[i * n + j] += weight * up[k * n + j];
    }
    for (let j = 0; j < n; j++) matrix[i * n + j] /= total; // at the rim only the inside counts
  }
  spreads.set(n, matrix);
  return matrix;
}

function cubic(x) {
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/**
 * One word's weights (rows · columns) as a smooth map of lightness in [0, 1].
 * The least weight is dark and the greatest light, but a model that looked everywhere alike is
 * drawn grey and not as a landscape of rounding errors.
 */
export function smoothMap(weights, [rows, columns]) {
  const down = spread(rows);
  const across = spread(columns);
  const height = rows * UPSAMPLE;
  const width = columns * UPSAMPLE;
  const tall = new Float64Array(height * columns);
  for (let y = 0; y < height; y++)
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++)
        tall[y * columns + c] += down[y * rows + r] * weights[r * columns + c];
  const values = new Float32Array(height * width);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let c = 0; c < columns; c++) sum += across[x * columns + c] * tall[y * columns + c];
      values[y * width + x] = sum;
    }
  const even = 1 / (rows * columns);
  let low = 0.5 * even;
  let high = 2 * even;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  for (let i = 0; i < values.length; i++) values[i] = (values[i] - low) / (high - low);
  return { width, height, values };
}

/** The lightness of a map at a place given as fractions of what the model saw. */
export function lightAt(map, x, y) {
  const px = Math.min(map.width - 1, Math.max(0, Math.floor(x * map.width)));
  const py = Math.min(map.height - 1, Math.max(0, Math.floor(y * map.height)));
  return map.values[py * map.width + px];
}

/** Where each pixel of one side of the overlay reads the map (between two of its `cells`), and how
 *  much of the light reaches it. */
function axis(length, start, stop, cells) {
  return Array.from({ length }, (_, i) => {
    const inside = ((i + 0.5) / length - start) / (stop - start);
    const at = Math.min(cells - 1, Math.max(0, inside * cells - 0.5));
    const low = Math.min(cells - 2, Math.floor(at));
    const outside = Math.max(0, -inside, inside - 1);
    return { low, part: at - low, fade: Math.exp(-0.5 * (outside / (FADE * SMOOTH)) ** 2) };
  });
}

/** Lightness in [0, 1] of every pixel of an overlay of width × height over the whole picture. */
export function lightness(map, [left, top, right, bottom], width, height) {
  const across = axis(width, left, right, map.width);
  const down = axis(height, top, bottom, map.height);
  const light = new Float32Array(width * height);
  down.forEach((y, i) =>
    across.forEach((x, j) => {
      const at = y.low * map.width + x.low;
      const [a, b] = [map.values[at], map.values[at + 1]];
      const [c, d] = [map.values[at + map.width], map.values[at + map.width + 1]];
      const above = a + (b - a) * x.part;
      const below = c + (d - c) * x.part;
      light[i * width + j] = (above + (below - above) * y.part) * y.fade * x.fade;
    }),
  );
  return light;
}

/** A veil that is dark where the light is not; `amount` of 0 is no veil at all. */
export function veil(context, light, amount = 1) {
  const { width, height } = context.canvas;
  const image = context.createImageData(width, height);
  for (let i = 0; i < light.length; i++) {
    // pixel · (1 − a) + lamp · glow as one colour laid over the picture with opacity a
    const a = DIM + (GLOW - DIM) * light[i];
    const glow = (GLOW * light[i]) / a;
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = LAMP[k] * glow;
    image.data[4 * i + 3] = 255 * a * amount;
  }
  context.putImageData(image, 0, 0);
}

export function overlaySize(width, height, side = SIDE) {
  const scale = side / Math.max(width, height);
  return [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
}

/** The light on one canvas: `show` moves it to a map, `hide` removes it. */
export class Light {
  constructor(canvas) {
    this.context = canvas.getContext('2d', { willReadFrequently: true });
    this.light = null;
    this.amount = 0;
    this.frame = 0;
  }

  resize(width, height) {
    const { canvas } = this.context;
    [canvas.width, canvas.height] = overlaySize(width, height);
    cancelAnimationFrame(this.frame);
    this.light = null;
    this.amount = 0;
  }

  show(map, box) {
    const { width, height } = this.context.canvas;
    const target = lightness(map, box, width, height);
    const from = this.light ?? target;
    this.move(this.amount, 1, (part) => from.map((value, i) => value + (target[i] - value) * part));
  }

  hide() {
    const from = this.light;
    if (from) this.move(this.amount, 0, () => from);
  }

  move(before, after, lightAt) {
    cancelAnimationFrame(this.frame);
    const began = performance.now();
    const calm = isCalm();
    const paint = (now) => {
      const part = calm ? 1 : Math.min(1, Math.max(0, (now - began) / MOVE));
      this.light = lightAt(part);
      this.amount = before + (after - before) * part;
      veil(this.context, this.light, this.amount);
      if (part < 1) this.frame = requestAnimationFrame(paint);
      else if (after === 0) this.light = null;
    };
    paint(began);
  }
}
