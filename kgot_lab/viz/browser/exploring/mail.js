// What the explorer asks Python, and which answers it takes.

const EXPLORER_LATE = 1500, EXPLORER_LOST = 15000; // milliseconds without an answer after which the view says so
const EXPLORER_AHEAD = 2; // wishes on their way to Python at once

/** Sends two wishes ahead, since the way to Python and back takes longer than the answer, and then only the newest: what a slider
 * passed over meanwhile is not asked for. An answer older than the one on screen is dropped. */
function explorerMail(tell, late) {
  let number = 0, waiting = null, timers = [];
  const flying = new Map();
  const stop = () => timers.forEach(clearTimeout);
  const giveUp = () => { for (const letter of flying.values()) letter.lost = true; late(true); };
  const send = (wish, since) => {
    stop();
    number += 1;
    flying.set(number, { wish, since, lost: false });
    timers = [setTimeout(() => late(false), EXPLORER_LATE), setTimeout(giveUp, EXPLORER_LOST)];
    tell({ n: number, wish });
  };
  return {
    stop,
    isBusy: () => flying.size > 0,
    /** Ask for something, or wait until an answer is back; `since` is when the reader moved something. */
    post(wish, since) {
      const ahead = [...flying.values()].filter((letter) => !letter.lost).length;
      if (ahead < EXPLORER_AHEAD) send(wish, since);
      else waiting = { wish, since: waiting?.since ?? since }; // the oldest movement that is not on its way yet
    },
    /** The wish that an answer belongs to, or null when it is an old one; the wish that waits leaves at once. */
    landed(answered) {
      const letter = flying.get(answered);
      if (!letter) return null;
      for (const earlier of [...flying.keys()]) if (earlier <= answered) flying.delete(earlier);
      if (!flying.size) stop();
      const next = waiting;
      waiting = null;
      if (next) send(next.wish, next.since);
      return letter;
    },
  };
}
