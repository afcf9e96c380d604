// How a clip is chosen: from a file, by drop, or with the camera.

const LONGEST = 10; // seconds that the camera films

/** Calls `give(file)` for every clip, and `showMessage(text)` if there is none. */
export function listenForClips(root, give, showMessage) {
  const find = (selector) => root.querySelector(selector);
  const file = find('#clip-file');
  find('#clip-pick').addEventListener('click', () => file.click());
  file.addEventListener('change', () => {
    if (file.files.length) give(file.files[0]);
    file.value = ''; // so that the same file can be chosen again
  });
  const place = find('#clip-drop');
  for (const kind of ['dragover', 'dragleave', 'drop'])
    place.addEventListener(kind, (event) => {
      event.preventDefault();
      event.stopPropagation(); // the page takes other drops
      place.classList.toggle('over', kind === 'dragover');
      if (kind === 'drop' && event.dataTransfer.files[0]) give(event.dataTransfer.files[0]);
    });
  const button = find('#clip-camera');
  let recorder = null;
  button.addEventListener('click', async () => {
    if (recorder) return recorder.stop();
    showMessage('');
    try {
      recorder = await film(find('#clip-live'), (clip) => {
        recorder = null;
        button.textContent = 'Film something';
        give(clip);
      });
      button.textContent = 'Stop';
    } catch {
      showMessage('The camera cannot be used. Choose a clip instead.');
    }
  });
}

/** A recorder that films, and shows what it films, until it is stopped or the time is over. */
async function film(view, onEnd) {
  const video = { facingMode: 'environment', width: { ideal: 640 } };
  const stream = await navigator.mediaDevices.getUserMedia({ video });
  const recorder = new MediaRecorder(stream);
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  view.srcObject = stream;
  view.hidden = false;
  const late = setTimeout(() => recorder.stop(), 1000 * LONGEST);
  recorder.onstop = () => {
    clearTimeout(late);
    for (const track of stream.getTracks()) track.stop();
    view.srcObject = null;
    view.hidden = true;
    onEnd(new Blob(parts, { type: recorder.mimeType }));
  };
  recorder.start();
  return recorder;
}
