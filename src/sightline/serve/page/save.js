// Files to save: a sheet with a panel per word (PNG), the light in motion (GIF), the answer (JSON).

import { make } from './dom.js';
import { encodeGif } from './gif.js';
import { lightness, overlaySize, veil } from './heat.js';

const INK = '#1d1b18';
const SANS = 'system-ui, sans-serif';
const SERIF = 'Georgia, "Times New Roman", serif';

export async function save(kind, look) {
  const name = `${(look.picture.name ?? 'photo').replace(/\.\w+$/, '') || 'photo'}-sightline`;
  if (kind === 'json') return download(`${name}.json`, asJson(look.answer));
  if (kind === 'png') return download(`${name}.png`, await pngSheet(look));
  return download(`${name}.gif`, await gif(look));
}

export function asJson(answer) {
  return new Blob([JSON.stringify(answer, null, 1)], { type: 'application/json' });
}

export function download(name, blob) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A panel of the picture with one word's light, or without any. */
function panel(look, index, width, height) {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(look.image, 0, 0, width, height);
  if (index !== null && look.maps) {
    const [across, down] = overlaySize(width, height);
    const overlay = new OffscreenCanvas(across, down).getContext('2d');
    veil(overlay, lightness(look.maps[index], look.box, across, down));
    context.drawImage(overlay.canvas, 0, 0, width, height);
  }
  return canvas;
}

// ---------------------------------------------------------------- PNG

/** The picture and then one panel per word, in rows, under the sentence. */
function pngSheet(look) {
  const { tokens, text } = look.sentence;
  const [width, height] = overlaySize(look.image.naturalWidth, look.image.naturalHeight, 260);
  const [margin, gap, line, title] = [36, 16, 34, 64];
  const count = tokens.length + 1;
  const columns = Math.min(count, Math.max(1, Math.round(Math.sqrt((count * 1.5 * (height + line)) / width))));
  const rows = Math.ceil(count / columns);
  const inner = Math.max(columns * (width + gap) - gap, 480);
  const canvas = new OffscreenCanvas(
    inner + 2 * margin,
    title + rows * (height + line + gap) - gap + 2 * margin,
  );
  const context = canvas.getContext('2d');
  context.fillStyle = '#ffffff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = INK;
  context.font = `30px ${SERIF}`;
  context.fillText(text, margin, margin + 30, inner);
  context.textAlign = 'center';
  for (let i = 0; i < count; i++) {
    const x = margin + (i % columns) * (width + gap);
    const y = margin + title + Math.floor(i / columns) * (height + line + gap);
    context.font = `19px ${SANS}`;
    if (i) context.fillText(tokens[i - 1], x + width / 2, y + 22, width);
    context.drawImage(panel(look, i ? i - 1 : null, width, height), x, y + line);
  }
  return canvas.convertToBlob({ type: 'image/png' });
}

// ---------------------------------------------------------------- GIF

/** The picture, then the light from word to word while the sentence grows under it. */
async function gif(look) {
  const { tokens } = look.sentence;
  const [width, height] = overlaySize(look.image.naturalWidth, look.image.naturalHeight, 360);
  const page = new OffscreenCanvas(Math.max(width, 280), height + textHeight(tokens, Math.max(width, 280)));
  const context = page.getContext('2d', { willReadFrequently: true });
  const frames = [];
  const shoot = (index, delay) => {
    context.fillStyle = '#161512';
    context.fillRect(0, 0, page.width, page.height);
    context.drawImage(panel(look, index, width, height), (page.width - width) / 2, 0);
    lines(context, tokens, page.width, (word, i, x, y) => {
      const written = index === null ? frames.length > 0 : i <= index;
      if (!written) return;
      context.fillStyle = i === index ? '#f3bb55' : '#f2efe8';
      context.fillText(word, x, y + height);
    });
    frames.push({ data: context.getImageData(0, 0, page.width, page.height).data, delay });
  };
  shoot(null, 900);
  for (let i = 0; i < tokens.length; i++) shoot(i, 650);
  shoot(null, 2200);
  return new Blob([encodeGif(page.width, page.height, frames)], { type: 'image/gif' });
}

function textHeight(tokens, width) {
  let bottom = 0;
  lines(new OffscreenCanvas(1, 1).getContext('2d'), tokens, width, (_, __, ___, y) => (bottom = y));
  return bottom + 16;
}

/** Calls `draw` with each word's place, in lines that fit the width. */
function lines(context, tokens, width, draw) {
  context.font = `20px ${SERIF}`;
  const blank = context.measureText(' ').width;
  let x = 14;
  let y = 30;
  tokens.forEach((word, i) => {
    const long = context.measureText(word).width;
    if (x > 14 && x + long > width - 14) {
      x = 14;
      y += 28;
    }
    draw(word, i, x, y);
    x += long + blank;
  });
}
