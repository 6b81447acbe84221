const COUNT = new Intl.NumberFormat('en');

/** `2026-03-04 05:06:07` where the browser is: 24 hours, whatever the language. @param at RFC 3339. */
export function clockTime(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
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

/** A rate per second: small ones with a digit after the point. */
export function rate(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : number(Math.round(perSecond));
}
