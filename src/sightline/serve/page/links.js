// Links that restore a panel's state. All of it is in the address's fragment, which browsers send to
// no server:  #TASK?name=value&…

const MOST = 12_000; // characters of a fragment that are read

/** A link to this page that opens a task's panel in this state, names → texts. */
export function linkTo(task, state) {
  const kept = Object.entries(state).filter(([, value]) => value !== '' && value != null);
  const query = new URLSearchParams(kept).toString();
  return new URL(`#${task}${query && `?${query}`}`, location.href).href;
}

/** What an address's fragment says: {task, state}. */
export function readLink(fragment = location.hash) {
  const [task, ...rest] = fragment.slice(1, MOST).split('?');
  return { task, state: Object.fromEntries(new URLSearchParams(rest.join('?'))) };
}

/** Put a link into the address bar and the clipboard; resolves to what became of it, in words. */
export async function copyLink(link) {
  history.replaceState(null, '', link);
  try {
    await navigator.clipboard.writeText(link); // pages without TLS have no clipboard
    return 'Link copied';
  } catch {
    return 'The link is in the address bar';
  }
}
