const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const COUNT = new Intl.NumberFormat('en');

/** With the day where that is not today's. @param at RFC 3339. */
export function clockTime(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return date.toDateString() === new Date().toDateString() ? TIME.format(date) : DATE.format(date);
}

/** `30 days`, `3 days 2 h`, `5 min 12 s`, `12 s`; below 10 s with a digit after the point. */
export function duration(seconds: number): string {
  if (seconds < 10) return `${Number(Math.max(0, seconds).toFixed(1))} s`;
  const whole = Math.floor(seconds);
  const [days, hours, minutes] = [
    Math.floor(whole / 86_400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
  ];
  if (days > 7) return counted(days, 'day');
  if (days > 0) return `${counted(days, 'day')} ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

/** Three digits are enough to compare by. */
export function milliseconds(ms: number): string {
  if (ms >= 10_000) return duration(ms / 1000);
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)} kB`;
  if (count < 1_000_000_000) return `${(count / 1_000_000).toFixed(count < 10_000_000 ? 1 : 0)} MB`;
  return `${(count / 1_000_000_000).toFixed(count < 10_000_000_000 ? 1 : 0)} GB`;
}

/** `44,000`. */
export function number(count: number): string {
  return COUNT.format(count);
}

/** `1 Service`, `44,000 Services`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${number(count)} ${count === 1 ? noun : plural}`;
}
