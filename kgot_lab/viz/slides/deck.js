"use strict";
// One slide at a time; without this script all stand one below the other.
(() => {
  const slides = [...document.querySelectorAll("section")];
  const given = slides.findIndex((slide) => `#${slide.id}` === location.hash);
  let at = Math.max(0, given);

  function show(number) {
    at = Math.min(slides.length - 1, Math.max(0, number));
    slides.forEach((slide, each) => slide.classList.toggle("now", each === at));
    if (location.hash !== `#${slides[at].id}`) history.replaceState(null, "", `#${slides[at].id}`);
    scrollTo(0, 0);
  }

  const moves = {
    ArrowRight: () => at + 1, ArrowDown: () => at + 1, PageDown: () => at + 1, " ": () => at + 1,
    ArrowLeft: () => at - 1, ArrowUp: () => at - 1, PageUp: () => at - 1, Home: () => 0, End: () => slides.length - 1,
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" || event.key === "N") document.body.classList.toggle("noted");
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    show(event.key === " " && event.shiftKey ? at - 1 : move());
  });
  document.body.classList.add("one");
  show(at);
})();
