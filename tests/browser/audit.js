// What audit.py asks of the browser; each function takes the element of a live view.
(() => {
  const CONTROLS = "button, input, select, textarea, summary";
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true });

  /** A colour as CSS computes it, as red, green, blue and how much it covers. */
  const parts = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
  /** The colour behind an element: its own backgrounds and those it stands on. */
  const paper = (element) => (element ? over(parts(getComputedStyle(element).backgroundColor), paper(element.parentElement)) : [255, 255, 255]);
  /** Relative luminance and contrast ratio as WCAG 2.2 defines them. */
  const light = (rgb) => rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (one, other) => (Math.max(light(one), light(other)) + 0.05) / (Math.min(light(one), light(other)) + 0.05);

  /** Texts that do not stand out from what is behind them (1.4.3); those of disabled controls may be pale, still pictures have colours of their own. */
  function tooPale(view) {
    const found = [], walker = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim(), look = getComputedStyle(element);
      if (!text || !isSeen(element) || element.closest("title, desc, option, :disabled, svg:not(.kl svg)")) continue;
      const back = paper(element), ratio = contrast(over(parts(element.closest("svg") ? look.fill : look.color), back), back);
      const size = parseFloat(look.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(look.fontWeight) >= 700);
      if (ratio < (isLarge ? 3 : 4.5)) found.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
    }
    return found;
  }

  /** Still pictures that are seen and do not stand on white paper. */
  function offPaper(page) {
    return [...page.querySelectorAll("svg, img")].filter((drawing) => isSeen(drawing) && !drawing.closest(".kl, svg svg"))
      .filter((drawing) => paper(drawing).some((part) => part < 255)).map((drawing) => drawing.outerHTML.slice(0, 60));
  }

  /** Controls whose rim or ground does not stand out from what is behind them (1.4.11); buttons in a list are known by their words. */
  function tooFaint(view) {
    return [...view.querySelectorAll("button, input:not([type=range], [type=checkbox]), select, textarea")]
      .filter((control) => isSeen(control) && !control.matches(":disabled") && getComputedStyle(control).borderTopStyle !== "none")
      .map((control) => [control, contrast(over(parts(getComputedStyle(control).borderTopColor), paper(control.parentElement)), paper(control.parentElement))])
      .filter(([, ratio]) => ratio < 3).map(([control, ratio]) => `${control.tagName} ${control.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }

  /** Controls that are hard to hit (2.5.8); a box is hit by its label too. */
  function tooSmall(view) {
    return [...view.querySelectorAll(CONTROLS)].filter((control) => isSeen(control) && !control.matches(":disabled"))
      .map((control) => [control, (control.closest("label:has([type=checkbox])") ?? control).getBoundingClientRect()])
      .filter(([, box]) => box.width < 24 || box.height < 23.9)
      .map(([control, box]) => `${control.tagName} ${control.textContent}: ${box.width} x ${box.height}`);
  }

  /** Controls that lie beyond the window, and the page if it scrolls sideways (1.4.10). */
  function tooWide(view) {
    const sideways = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
    const beyond = [...view.querySelectorAll(CONTROLS)].filter(isSeen).map((control) => [control, control.getBoundingClientRect()])
      .filter(([, box]) => box.right > innerWidth || box.left < 0);
    return [...sideways, ...beyond.map(([control]) => `${control.tagName} ${control.textContent.slice(0, 30)}`)];
  }

  /** Where the Tab key should stop, in the order of the page. */
  function stops(view) {
    return [view, ...view.querySelectorAll("*")].filter((element) => isSeen(element) && element.tabIndex >= 0 && !element.matches(":disabled")
      && (element.matches(CONTROLS) || element.hasAttribute("tabindex")));
  }

  /** What has the focus: its place among the stops, and whether one sees that it has it. */
  function at(view) {
    const held = document.activeElement, look = getComputedStyle(held), box = held.getBoundingClientRect();
    const far = parseFloat(look.outlineOffset) + parseFloat(look.outlineWidth);
    let isCut = false;
    for (let up = held.parentElement; up && view.contains(up); up = up.parentElement) {
      const edge = up.getBoundingClientRect();
      if (getComputedStyle(up).overflowX !== "visible") isCut ||= box.left - far < edge.left || box.right + far > edge.right;
    }
    const hasRing = held.matches(":focus-visible") && look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 2;
    const name = `${held.tagName} ${held.getAttribute("aria-label") ?? held.textContent.trim().slice(0, 30)}`;
    return { inside: view.contains(held), number: stops(view).indexOf(held), all: stops(view).length, name, seen: hasRing && !isCut };
  }

  /** What is written on a control, without what screen readers are not told. */
  function written(control) {
    const copy = control.cloneNode(true);
    for (const sign of copy.querySelectorAll("[aria-hidden=true]")) sign.remove();
    return [...copy.childNodes].map((node) => node.textContent).join(" ");
  }

  return { tooPale, offPaper, tooFaint, tooSmall, tooWide, written, at,
    first: (view) => stops(view)[0].focus({ focusVisible: true }), last: (view) => stops(view).at(-1).focus({ focusVisible: true }) };
})()
