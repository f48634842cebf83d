// Two buttons that keep what a canvas shows: a picture (PNG), and a video (WebM, or MP4 where the browser makes no WebM).
// Everything happens in the browser: nothing is sent, and the robot's programs do not notice.
"use strict";
const LONGEST_VIDEO = 120;  // s
const LONGEST_WAIT = 30000;  // ms for the encoder's first picture: stopped before it, it writes nothing, and a busy machine takes its time
function addCapture(into, findCanvas, nameOf, begun = () => {}) {
  const button = (text, title) => { const made = document.createElement("button"); made.textContent = text; made.title = title;
    made.type = "button"; into.append(made); return made; };
  const save = (blob, ending) => {
    const now = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "_"), link = document.createElement("a");
    Object.assign(link, {href: URL.createObjectURL(blob), download: `${nameOf()}_${now}.${ending}`}).click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  // what a page shows is the canvas over white; a copy has it so, with even sizes, as encoders like them
  const copy = document.createElement("canvas"), paint = copy.getContext("2d");
  function take(source) {
    paint.fillStyle = "#fff"; paint.fillRect(0, 0, copy.width, copy.height);
    paint.drawImage(source, 0, 0, copy.width, copy.height);
  }
  function fit(source) { copy.width = source.width & ~1; copy.height = source.height & ~1; }
  button("picture", "Save what is shown as PNG").addEventListener("click", () => requestAnimationFrame(() => {
    const source = findCanvas(); fit(source); take(source); copy.toBlob(blob => save(blob, "png"), "image/png");
  }));
  let recorder = null, since = 0, begins = false, ending = false;
  const video = button("video", `Record what is shown, until pressed again (${LONGEST_VIDEO} s at most)`);
  const stop = () => { if (recorder && recorder.state === "recording") recorder.stop(); };
  const end = () => { ending = true; if (begins) stop(); else setTimeout(stop, LONGEST_WAIT); };
  video.hidden = !window.MediaRecorder || !copy.captureStream;
  video.addEventListener("click", () => {
    if (recorder) { end(); return; }
    const source = findCanvas(), chunks = [];
    fit(source); take(source);
    const kind = ["video/webm;codecs=vp9", "video/webm", "video/mp4"].find(each => MediaRecorder.isTypeSupported(each));
    recorder = new MediaRecorder(copy.captureStream(30), {mimeType: kind, videoBitsPerSecond: 6e6});
    recorder.ondataavailable = event => { chunks.push(event.data); begins ||= event.data.size > 0; if (begins && ending) stop(); };
    recorder.onstop = () => { const kept = new Blob(chunks, {type: kind}); recorder = null;
      video.textContent = kept.size ? "video" : "nothing recorded"; video.classList.remove("recording");
      if (kept.size) save(kept, kind.includes("webm") ? "webm" : "mp4"); };
    recorder.start(1000); begins = ending = false; since = performance.now(); video.classList.add("recording"); begun();
    const frame = () => {
      if (!recorder) return;
      take(source);
      const spent = (performance.now() - since) / 1000;
      video.textContent = `end video (${Math.floor(spent)} s)`;
      if (spent > LONGEST_VIDEO) end(); else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  return {end, get recording() { return recorder !== null; }};
}
