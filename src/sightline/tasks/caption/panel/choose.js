// How a photo is chosen: from a file, by drop or paste, with the camera, or from the samples.

import { getBlob } from '../../api.js';
import { make } from '../../dom.js';

/** Calls `onPhoto({blob, name, alt})` for every photo, and `showMessage(text)` if there is none. */
export function listenForPhotos(root, onPhoto, showMessage) {
  const find = (selector) => root.querySelector(selector);
  const [file, capture] = ['#file', '#capture'].map(find);
  find('#pick').addEventListener('click', () => file.click());
  for (const input of [file, capture])
    input.addEventListener('change', () => {
      if (input.files.length) give(input.files[0]);
      input.value = ''; // so that the same file can be chosen again
    });
  listenForDrops(give, showMessage);
  listenForPastes(give);
  listenForCamera(find, give, showMessage);

  function give(blob) {
    onPhoto({ blob, name: blob.name ?? 'photo', alt: 'Your picture' });
  }
}

function listenForDrops(give, showMessage) {
  let depth = 0; // dragenter and dragleave come for every element on the way
  const over = (by) => {
    depth = by === 0 ? 0 : Math.max(0, depth + by);
    document.body.classList.toggle('dropping', depth > 0);
  };
  addEventListener('dragenter', (event) => hasFiles(event) && over(1));
  addEventListener('dragleave', (event) => hasFiles(event) && over(-1));
  addEventListener('dragover', (event) => isForField(event) || event.preventDefault());
  addEventListener('drop', (event) => {
    if (isForField(event)) return;
    event.preventDefault();
    over(0);
    const blob = event.dataTransfer.files[0];
    if (blob) give(blob);
    else showMessage('Drop a photo’s file here; a link to one cannot be opened.');
  });
}

function hasFiles(event) {
  return event.dataTransfer?.types.includes('Files');
}

/** Text that is dragged into a field goes there. */
function isForField(event) {
  return !hasFiles(event) && event.target.matches?.('input, textarea');
}

function listenForPastes(give) {
  addEventListener('paste', (event) => {
    const blob = [...event.clipboardData.files].find((one) => one.type.startsWith('image/'));
    if (!blob) return; // text goes where it was pasted
    event.preventDefault();
    give(blob);
  });
}

function listenForCamera(find, give, showMessage) {
  const dialog = find('#camera-dialog');
  const view = find('#camera-view');
  find('#camera').addEventListener('click', async () => {
    // A phone's own camera app is better than a small view in a page.
    const isPhone = matchMedia('(pointer: coarse)').matches;
    if (isPhone || !navigator.mediaDevices) return find('#capture').click();
    try {
      view.srcObject = await navigator.mediaDevices.getUserMedia({
        video: { facingMode: 'environment', width: { ideal: 1280 } },
      });
      dialog.showModal();
    } catch {
      showMessage('The camera could not be opened. Allow it for this page, or choose a photo instead.');
    }
  });
  find('#camera-take').addEventListener('click', () => {
    if (!view.videoWidth) return; // it has not started
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [view.videoWidth, view.videoHeight];
    canvas.getContext('2d').drawImage(view, 0, 0);
    canvas.toBlob((blob) => {
      dialog.close();
      give(blob);
    }, 'image/jpeg', 0.92);
  });
  find('#camera-close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => {
    for (const track of view.srcObject?.getTracks() ?? []) track.stop();
    view.srcObject = null;
  });
}

/** The server's sample photos as a row of small pictures. */
export function listSamples(root, samples, onPhoto, showError) {
  root.querySelector('#samples').hidden = !samples.length;
  root.querySelector('#sample-list').replaceChildren(
    ...samples.map(({ name, url, alt, credit }) => {
      const src = url.replace(/^\//, ''); // relative to the page, wherever a proxy has put it
      const image = make('img', { loading: 'lazy', src, alt });
      const button = make('button', { type: 'button', title: credit ?? '' }, image);
      button.addEventListener('click', async () => {
        const blob = await getBlob(src).catch(showError);
        if (blob) onPhoto({ blob, name, alt, sample: name });
      });
      button.dataset.sample = name;
      return make('li', {}, button);
    }),
  );
}
