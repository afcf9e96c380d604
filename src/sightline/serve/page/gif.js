// A small GIF encoder: frames of RGBA pixels in, an animated GIF89a that repeats for ever out.

/** `frames`: [{data: RGBA bytes, delay: milliseconds}], all of width × height. */
export function encodeGif(width, height, frames) {
  const palette = medianCut(frames);
  const nearest = nearestOf(palette);
  const out = [];
  const word = (value) => out.push(value & 255, value >> 8);
  const text = (letters) => out.push(...[...letters].map((letter) => letter.charCodeAt(0)));
  text('GIF89a');
  word(width);
  word(height);
  out.push(0xf7, 0, 0); // a palette of 256 colours for all frames
  for (let i = 0; i < 256; i++) out.push(...(palette[i] ?? [0, 0, 0]));
  out.push(0x21, 0xff, 11);
  text('NETSCAPE2.0');
  out.push(3, 1, 0, 0, 0); // repeat for ever
  for (const { data, delay } of frames) {
    out.push(0x21, 0xf9, 4, 0);
    word(Math.round(delay / 10));
    out.push(0, 0, 0x2c, 0, 0, 0, 0);
    word(width);
    word(height);
    out.push(0, 8); // pixels of 8 bits
    const codes = compress(indices(data, width, height, palette, nearest));
    for (let at = 0; at < codes.length; at += 255) {
      const block = codes.slice(at, at + 255);
      out.push(block.length, ...block);
    }
    out.push(0);
  }
  out.push(0x3b);
  return new Uint8Array(out);
}

// ---------------------------------------------------------------- colours

/** At most 256 colours: the boxes of colours (5 bits a channel) are halved where they are widest. */
function medianCut(frames) {
  const counts = new Uint32Array(1 << 15);
  for (const { data } of frames)
    for (let i = 0; i < data.length; i += 4) counts[short(data[i], data[i + 1], data[i + 2])]++;
  const colours = [];
  counts.forEach((count, key) => {
    if (count) colours.push({ count, channels: [key >> 10, (key >> 5) & 31, key & 31] });
  });
  const boxes = [measured(colours)];
  while (boxes.length < 256) {
    boxes.sort((a, b) => b.worth - a.worth);
    if (boxes[0].colours.length < 2) break;
    boxes.push(...halves(boxes.shift()));
  }
  return boxes.map(mean);
}

function short(r, g, b) {
  return ((r >> 3) << 10) | ((g >> 3) << 5) | (b >> 3);
}

function measured(colours) {
  const low = [31, 31, 31];
  const high = [0, 0, 0];
  let count = 0;
  for (const { channels, count: n } of colours) {
    count += n;
    channels.forEach((value, k) => {
      low[k] = Math.min(low[k], value);
      high[k] = Math.max(high[k], value);
    });
  }
  const ranges = high.map((value, k) => value - low[k]);
  const range = Math.max(...ranges);
  // The square root lets small things keep colours of their own
  return { colours, channel: ranges.indexOf(range), worth: range * Math.sqrt(count), count };
}

function halves({ colours, channel, count }) {
  colours.sort((a, b) => a.channels[channel] - b.channels[channel]);
  let cut = 0;
  for (let sum = 0; cut < colours.length - 1 && sum < count / 2; cut++) sum += colours[cut].count;
  cut = Math.max(1, cut);
  return [measured(colours.slice(0, cut)), measured(colours.slice(cut))];
}

function mean({ colours, count }) {
  const sum = [0, 0, 0];
  for (const { channels, count: n } of colours) channels.forEach((v, k) => (sum[k] += v * n));
  return sum.map((value) => Math.min(255, Math.round((value / count) * 8 + 4)));
}

/** The palette's nearest colour, remembered for each colour of 5 bits a channel. */
function nearestOf(palette) {
  const known = new Int16Array(1 << 15).fill(-1);
  return (r, g, b) => {
    const key = short(r, g, b);
    if (known[key] >= 0) return known[key];
    let best = 0;
    let least = Infinity;
    palette.forEach((colour, i) => {
      const far = (colour[0] - r) ** 2 + (colour[1] - g) ** 2 + (colour[2] - b) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return (known[key] = best);
  };
}

/** Pixels as palette numbers; an ordered pattern hides the steps between colours and, unlike
 *  spreading the error, stands still from frame to frame. */
function indices(data, width, height, palette, nearest) {
  const pattern = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5];
  const out = new Uint8Array(width * height);
  const clip = (value) => Math.min(255, Math.max(0, value));
  for (let y = 0, i = 0; y < height; y++)
    for (let x = 0; x < width; x++, i++) {
      const shift = pattern[(y & 3) * 4 + (x & 3)] - 7.5;
      out[i] = nearest(clip(data[4 * i] + shift), clip(data[4 * i + 1] + shift), clip(data[4 * i + 2] + shift));
    }
  return out;
}

// ---------------------------------------------------------------- LZW

/** Palette numbers as the bytes of variable-width LZW codes, least significant bit first. */
function compress(pixels) {
  const CLEAR = 256;
  const bytes = [];
  let bits = 0;
  let held = 0;
  let size = 9;
  const emit = (code) => {
    held |= code << bits;
    for (bits += size; bits >= 8; bits -= 8) {
      bytes.push(held & 255);
      held >>= 8;
    }
  };
  let table = new Map();
  let next = CLEAR + 2;
  emit(CLEAR);
  let prefix = pixels[0];
  for (let i = 1; i < pixels.length; i++) {
    const key = (prefix << 8) | pixels[i];
    const known = table.get(key);
    if (known !== undefined) {
      prefix = known;
      continue;
    }
    emit(prefix);
    prefix = pixels[i];
    if (next === 4096) {
      emit(CLEAR);
      table = new Map();
      next = CLEAR + 2;
      size = 9;
      continue;
    }
    table.set(key, next);
    if (next === 1 << size) size++;
    next++;
  }
  emit(prefix);
  emit(CLEAR + 1); // the end
  if (bits) bytes.push(held & 255);
  return bytes;
}
