// Light or dark, as what is around a view; and a drawing that is never left blank.

/** A colour, in whatever way a page writes it, as red, green, blue and opacity from 0 to 255. */
const pixelOf = (() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  return (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  };
})();

/** Whether what lies behind an element is dark: the first background that is not see-through, or the paper of the page itself. */
function isDark(place) {
  const parts = (element) => pixelOf(getComputedStyle(element).backgroundColor);
  const dark = ([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  for (let element = around(place); element; element = around(element)) {
    const found = parts(element);
    if (found[3] > 127) return dark(found);
  }
  const probe = make("span", { style: "background: Canvas; display: none" });
  document.documentElement.append(probe);
  const found = parts(probe);
  probe.remove();
  return dark(found);
}

/** Give a view the theme of what is around it, now and whenever that changes; it hears of a change as an event "kl-theme". */
function followTheme(root) {
  const look = () => {
    const dark = isDark(root);
    if (root.isConnected && dark !== root.classList.contains("kl-dark")) {
      root.classList.toggle("kl-dark", dark);
      root.dispatchEvent(new CustomEvent("kl-theme"));
    }
  };
  const later = () => { look(); requestAnimationFrame(look); setTimeout(look, 400); }; // a theme may come some time after its name
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const watcher = new MutationObserver(later);
  for (const place of [document.documentElement, document.body]) watcher.observe(place, { attributes: true });
  scheme.addEventListener("change", later);
  const back = new ResizeObserver(later); // a theme that changed while the view was out of the page, or put away, is seen when it comes back
  back.observe(root);
  look();
  return () => { back.disconnect(); watcher.disconnect(); scheme.removeEventListener("change", later); };
}

/** Tell a drawing of each new size it has, once there is any; of having come into sight again; and of another theme. */
function staying(place, { sized, themed }) {
  const host = place.closest(".kl") ?? place;
  const hear = () => { if (place.clientWidth && place.clientHeight) sized(); };
  const watcher = new ResizeObserver(hear);
  watcher.observe(place);
  const seen = () => { if (!document.hidden) hear(); };
  document.addEventListener("visibilitychange", seen);
  window.addEventListener("pageshow", seen);
  host.addEventListener("kl-theme", themed);
  return () => {
    watcher.disconnect();
    document.removeEventListener("visibilitychange", seen);
    window.removeEventListener("pageshow", seen);
    host.removeEventListener("kl-theme", themed);
  };
}
