// The service behind the page: requests, streamed answers and error messages.

const TRIES = 4; // of a request to a busy server

// By the error's code and, for other codes, by the response's status.
const MESSAGES = {
  bad_picture: 'That file could not be read as a picture. Try a JPEG, PNG or WebP photo.',
  unsupported_picture: 'That is not a picture that this server reads. Try a JPEG, PNG or WebP photo.',
  no_picture: 'There was no picture in that. Try a JPEG, PNG or WebP photo.',
  bad_clip: 'That clip is damaged, or there is no film in it.',
  unsupported_clip: 'That is not a clip that this server reads. Try an MP4, WebM or GIF.',
  clip_too_large: 'That clip is too long or too large for this server. Cut it first.',
  too_large: 'That file is too large for this server. Try a smaller one.',
  too_many_pixels: 'That photo has too many pixels for this server. Try a smaller one.',
  too_slow: 'The photo took too long to arrive. Try again, or a smaller photo.',
  time_limit: 'That took too long. Try again, or choose a smaller beam.',
  internal: 'Something went wrong in the server. Please try again.',
  offline: 'The server cannot be reached. Is it still running?',
  408: 'That took too long. Try again, or choose a smaller beam.',
  413: 'That photo is too large for this server. Try a smaller one.',
  415: 'That file is not a picture that this server reads. Try a JPEG, PNG or WebP photo.',
  401: 'That key is not the right one for this server.',
  429: 'The server is busy just now. Please try again in a moment.',
  503: 'The server is busy just now. Please try again in a moment.',
};

function sentence(message) {
  return `${message[0].toUpperCase()}${message.slice(1).replace(/\.$/, '')}.`;
}

/** An error with a message for the user. */
export class ServiceError extends Error {
  constructor(code, status, message) {
    super(MESSAGES[code] ?? MESSAGES[status] ?? sentence(message ?? 'something went wrong; try again'));
    this.code = code;
    this.status = status;
  }
}

const KEY = 'sightline-key'; // kept while the tab is open

export function useKey(key) {
  sessionStorage.setItem(KEY, key);
}

function headers(others = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...others, 'X-API-Key': key } : others;
}

async function get(address) {
  const response = await fetch(address, { headers: headers() }).catch(() => {
    throw new ServiceError('offline', 0);
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function getJson(address) {
  return (await get(address)).json();
}

export async function getBlob(address) {
  return (await get(address)).blob();
}

/**
 * The answer to a request; `onStep` gets each step of the search as it comes. A busy server gets
 * the request again after the time that it names, and `onWait(seconds)` is called before.
 */
export async function describe(address, fields, { signal, onStep, onWait }) {
  const body = bodyOf(fields);
  for (let tried = 1; ; tried++) {
    const response = await post(address, body, signal);
    if (response.ok) return follow(response, onStep);
    const error = await errorOf(response);
    const isBusy = [429, 503].includes(response.status) && error.code !== 'time_limit';
    if (!isBusy || tried === TRIES) throw error;
    const seconds = Math.min(30, Math.max(1, Number(response.headers.get('Retry-After')) || 1));
    onWait(seconds);
    await sleep(1000 * seconds, signal);
  }
}

/** A form where there is a file, JSON otherwise. */
function bodyOf(fields) {
  if (!fields.file) return JSON.stringify(fields);
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}

async function post(address, body, signal) {
  const kind = typeof body === 'string' ? { 'Content-Type': 'application/json' } : {};
  try {
    return await fetch(address, { method: 'POST', body, signal, headers: headers(kind) });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServiceError('offline', 0);
  }
}

async function errorOf(response) {
  const { error } = await response.json().catch(() => ({}));
  return new ServiceError(error?.code, response.status, error?.message);
}

/** The last event's answer; a server that does not stream answers with it at once. */
async function follow(response, onStep) {
  if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) return response.json();
  for await (const { event, data } of events(response.body)) {
    if (event === 'step') onStep(data);
    if (event === 'done') return data;
    if (event === 'error') throw new ServiceError(data.error?.code, 0, data.error?.message);
  }
  throw new ServiceError('offline', 0);
}

/** Server-sent events from a stream of bytes: blocks of lines, ended by an empty line. */
export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error instanceof TypeError ? new ServiceError('offline', 0) : error; // it broke off
    });
    if (done) return;
    rest += value.replaceAll('\r', '');
    const blocks = rest.split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      let event = 'message';
      const data = [];
      for (const line of block.split('\n')) {
        if (line.startsWith('event:')) event = line.slice(6).trim();
        if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
      }
      if (data.length) yield { event, data: JSON.parse(data.join('\n')) };
    }
  }
}

export function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('stopped', 'AbortError'));
    });
  });
}
