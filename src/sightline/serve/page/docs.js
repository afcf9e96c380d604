// /docs: what openapi.json says, as a page, with a form to try each path.

import { make } from './dom.js';

const find = (id) => document.getElementById(id);

/** A schema's own text, with what it refers to put in its place. */
function resolved(schema, whole) {
  if (!schema?.$ref) return schema ?? {};
  const named = schema.$ref.replace('#/', '').split('/').reduce((at, key) => at?.[key], whole);
  return resolved(named, whole);
}

/** What values a field may have, in words. */
function kindOf(field, whole) {
  const schema = resolved(field, whole);
  if (schema.anyOf) return schema.anyOf.map((one) => kindOf(one, whole)).join(' or ');
  if (schema.enum) return schema.enum.join(' or ');
  if (schema.type === 'array') {
    const items = schema.items ? ` of ${kindOf(schema.items, whole)}` : '';
    return `list${items}${range(schema.minItems, schema.maxItems)}`;
  }
  const size = schema.maxLength ? `, at most ${schema.maxLength} characters` : '';
  return `${schema.type ?? 'any'}${range(schema.minimum, schema.maximum)}${size}`;
}

function range(least, most) {
  if (least === undefined && most === undefined) return '';
  return `, ${least ?? ''}–${most ?? ''}`;
}

function table(heads, rows) {
  const head = make('tr', {}, ...heads.map((text) => make('th', { scope: 'col' }, text)));
  const body = rows.map((row) => make('tr', {}, ...row.map((cell) => make('td', {}, cell ?? ''))));
  return make('div', { className: 'scroll', tabIndex: 0 }, make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)));
}

function fieldsOf(schema, whole) {
  const { properties = {}, required = [] } = resolved(schema, whole);
  return Object.entries(properties).map(([name, field]) => [
    name,
    `${kindOf(field, whole)}${required.includes(name) ? ', required' : ''}`,
    resolved(field, whole).description ?? field.description ?? '',
  ]);
}

function curlOf(path, method, example) {
  const address = new URL(path.slice(1), document.baseURI);
  if (method === 'get') return `curl ${address}`;
  const body = JSON.stringify(example).replaceAll("'", "'\\''");
  return `curl ${address} -H 'Content-Type: application/json' -d '${body}'`;
}

/** One operation: what it takes, what it gives, and a form to try it. */
function section([path, method, operation], whole) {
  const id = `${method}${path.replaceAll('/', '-')}`;
  const title = make('h2', {}, make('span', { className: 'method' }, method.toUpperCase()), path);
  const parts = [title, make('p', {}, operation.summary ?? '')];
  const bodies = operation.requestBody?.content ?? {};
  for (const [kind, { schema }] of Object.entries(bodies)) {
    parts.push(make('h3', {}, `Body: ${kind}`));
    const fields = fieldsOf(schema, whole);
    if (fields.length) parts.push(table(['field', 'value', ''], fields));
    else parts.push(make('p', { className: 'note' }, 'The file itself, as it is or under its own type, such as image/jpeg. Other fields are in the query.'));
  }
  const example = bodies['application/json']?.example;
  parts.push(make('h3', {}, 'At a command line'), make('pre', { tabIndex: 0 }, curlOf(path, method, example)));
  const statuses = Object.entries(operation.responses).map(([status, { description }]) => [status, description]);
  const answers = [table(['status', ''], statuses)];
  const answer = operation.responses[200]?.content?.['application/json']?.example;
  if (answer) answers.push(make('pre', { tabIndex: 0 }, JSON.stringify(answer, null, 1)));
  parts.push(make('details', {}, make('summary', {}, 'Answers'), ...answers));
  parts.push(trial(path, method, example));
  return make('section', { id, className: 'path' }, ...parts);
}

function trial(path, method, example) {
  const text = make('textarea', { rows: 5, spellcheck: false, value: JSON.stringify(example, null, 1) ?? '' });
  text.ariaLabel = `Body for ${path}`;
  const send = make('button', { type: 'button' }, 'Send');
  const said = make('pre', { hidden: true, tabIndex: 0 });
  said.setAttribute('aria-live', 'polite');
  send.addEventListener('click', async () => {
    send.disabled = true;
    said.hidden = false;
    said.textContent = '…';
    said.textContent = await ask(path, method, text.value);
    send.disabled = false;
  });
  const parts = method === 'get' ? [send, said] : [text, send, said];
  return make('details', {}, make('summary', {}, 'Try it'), ...parts);
}

async function ask(path, method, body) {
  const headers = { 'Content-Type': 'application/json' };
  if (find('key').value) headers['X-API-Key'] = find('key').value;
  try {
    const sent = method === 'get' ? { headers } : { method: 'POST', headers, body };
    const response = await fetch(path.slice(1), sent);
    const text = await response.text();
    const shown = response.headers.get('Content-Type')?.includes('json') ? JSON.stringify(JSON.parse(text), null, 1) : text;
    return `${response.status} ${response.statusText}\n${shown}`;
  } catch {
    return 'The server cannot be reached.';
  }
}

async function start() {
  const whole = await (await fetch('openapi.json')).json();
  const operations = Object.entries(whole.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation]),
  );
  const sections = operations.map((one) => section(one, whole));
  find('paths').replaceChildren(...sections);
  find('index').replaceChildren(
    ...operations.map(([path, method], i) =>
      make('li', {}, make('a', { href: `#${sections[i].id}` }, `${method.toUpperCase()} ${path}`)),
    ),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

start()
  .catch((error) => {
    console.error(error);
    find('message').hidden = false;
    find('message').textContent = 'The description of the API could not be read. Try again.';
  })
  .finally(() => (document.body.dataset.ready = 'true'));
