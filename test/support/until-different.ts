/** Calls back once, when `isSame` no longer holds: looks once in each period, by the machine's time, and keeps no process alive. */
export function untilDifferent(periodMs: number, isSame: () => Promise<boolean>, onChange: () => void): () => void {
  let ended = false;
  const look = async (): Promise<void> => {
    if (await isSame()) {
      wait();
    } else if (!ended) {
      onChange();
    }
  };
  const wait = (): void => {
    if (!ended) setTimeout(() => void look(), periodMs).unref();
  };
  wait();
  return () => {
    ended = true;
  };
}
