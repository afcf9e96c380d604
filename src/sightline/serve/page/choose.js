// The ways a photo comes in: picked, dropped, pasted, taken with the camera, or one of the samples.

import { getBlob } from './api.js';

/** Calls `onPhoto({blob, name, alt})` for every photo, and `onTrouble(message)`. */
export function listenForPhotos(onPhoto, onTrouble) {
  const file = document.getElementById('file');
  const capture = document.getElementById('capture');
  document.getElementById('pick').addEventListener('click', () => file.click());
  for (const input of [file, capture])
    input.addEventListener('change', () => {
      if (input.files.length) give(input.files[0]);
      input.value = ''; // so that the same file can be chosen again
    });
  listenForDrops(give, onTrouble);
  listenForPastes(give);
  listenForCamera(capture, give, onTrouble);

  function give(blob) {
    onPhoto({ blob, name: blob.name ?? 'photo', alt: 'Your picture' });
  }
}

function listenForDrops(give, onTrouble) {
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
    else onTrouble('Drop a photo’s file here; a link to one cannot be opened.');
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

function listenForCamera(capture, give, onTrouble) {
  const dialog = document.getElementById('camera-dialog');
  const view = document.getElementById('camera-view');
  const camera = () => navigator.mediaDevices?.getUserMedia;
  document.getElementById('camera').addEventListener('click', async () => {
    // A phone's own camera app is better than a small view in a page.
    if (!camera() || matchMedia('(pointer: coarse)').matches) return capture.click();
    try {
      view.srcObject = await navigator.mediaDevices.getUserMedia({
        video: { facingMode: 'environment', width: { ideal: 1280 } },
      });
      dialog.showModal();
    } catch {
      onTrouble('The camera could not be opened. Allow it for this page, or choose a photo instead.');
    }
  });
  document.getElementById('camera-take').addEventListener('click', () => {
    if (!view.videoWidth) return; // it has not begun
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [view.videoWidth, view.videoHeight];
    canvas.getContext('2d').drawImage(view, 0, 0);
    canvas.toBlob((blob) => {
      dialog.close();
      give(blob);
    }, 'image/jpeg', 0.92);
  });
  document.getElementById('camera-close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => {
    for (const track of view.srcObject?.getTracks() ?? []) track.stop();
    view.srcObject = null;
  });
}

/** The server's sample photos as a row of small pictures. */
export function listSamples(samples, onPhoto, onTrouble) {
  document.getElementById('samples').hidden = !samples.length;
  document.getElementById('sample-list').replaceChildren(
    ...samples.map((sample) => {
      const item = document.createElement('li');
      const button = document.createElement('button');
      button.type = 'button';
      button.title = sample.credit ?? '';
      const image = document.createElement('img');
      const url = sample.url.replace(/^\//, ''); // from the page, wherever a proxy has put it
      image.src = url;
      image.alt = sample.alt;
      image.loading = 'lazy';
      button.append(image);
      button.addEventListener('click', async () => {
        const blob = await getBlob(url).catch(onTrouble);
        if (blob) onPhoto({ blob, name: sample.name, alt: sample.alt, credit: sample.credit });
      });
      item.append(button);
      return item;
    }),
  );
}
