// Whether live views work here: drawn by the browser, heard by Python.

/** The probe: says that the browser draws it, asks Python for an answer, and says how long that took. */
function probeView(root, data, tell) {
  const drawn = make("canvas", { width: 24, height: 24, "aria-hidden": "true" });
  const pen = drawn.getContext("2d");
  pen.fillStyle = "#009E73";
  pen.arc(12, 12, 9, 0, 2 * Math.PI);
  pen.fill();
  const words = make("span", { role: "status" }, tell ? "The browser draws live views. Waiting for Python to answer …" : "The browser draws live views.");
  root.append(make("div", { class: "kl-bar" }, drawn, words));
  const asked = performance.now();
  tell?.({ probe: true });
  return {
    update(message) {
      if (message.heard) words.textContent = `Live views work here: the browser draws them, and Python answered in ${Math.round(performance.now() - asked)} ms.`;
    },
    destroy() {},
  };
}
