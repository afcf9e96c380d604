// Small pictures of a film at some times.

const PATIENCE = 4000; // milliseconds for a frame: not every film can be wound

/** Draws the film's frame at each of the times into the canvas of the same place. */
export async function drawFrames(url, times, canvases) {
  const film = document.createElement('video');
  film.muted = true;
  film.preload = 'auto';
  film.src = url;
  try {
    await heard(film, 'loadeddata');
    for (const [i, canvas] of canvases.entries()) {
      film.currentTime = times[i];
      await heard(film, 'seeked');
      canvas.height = Math.round((canvas.width * film.videoHeight) / film.videoWidth);
      canvas.getContext('2d').drawImage(film, 0, 0, canvas.width, canvas.height);
    }
  } catch {
    // what is drawn is drawn: the bars say the same
  } finally {
    film.removeAttribute('src');
    film.load();
  }
}

function heard(film, kind) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(reject, PATIENCE);
    film.addEventListener(kind, () => (clearTimeout(late), resolve()), { once: true });
    film.addEventListener('error', reject, { once: true });
  });
}
