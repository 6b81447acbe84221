import type { Result } from './measures.js';

const WIDTH = 720;
const HEIGHT = 420;
const MARGIN = { left: 70, right: 20, top: 40, bottom: 60 };
const COLOURS = { pointsman: '#1a73e8', peer: '#d93025' };

interface Scale {
  readonly at: (value: number) => number;
  /** Powers of ten that it shows. */
  readonly marks: readonly number[];
}

/**
 * An SVG of the time from the process's start to being healthy, against the number of endpoints, both on logarithmic scales. It has the first start and the
 * restart on the table it left, of every measured proxy.
 */
export function plotSyncTimes(results: readonly Result[]): string {
  const times = results.flatMap(({ outside }) => [outside.coldHealthyMs, outside.restartHealthyMs]);
  const across = scale(
    results.map(({ endpoints }) => endpoints),
    MARGIN.left,
    WIDTH - MARGIN.right,
  );
  const up = scale(times, HEIGHT - MARGIN.bottom, MARGIN.top);
  const parts = [...grid(across, up)];
  const proxies = [...new Set(results.map(({ proxy }) => proxy))];
  for (const [number, proxy] of proxies.entries()) {
    const points = results.filter((result) => result.proxy === proxy).sort((a, b) => a.endpoints - b.endpoints);
    const colour = COLOURS[proxy];
    const line = (time: (result: Result) => number, dashes: string): void => {
      const places = points.map((point) => `${across.at(point.endpoints).toFixed(1)},${up.at(time(point)).toFixed(1)}`);
      parts.push(
        `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"${dashes}/>`,
        ...places.map((place) => {
          const [x, y] = place.split(',');
          return `<circle cx="${x ?? ''}" cy="${y ?? ''}" r="4" fill="${colour}"/>`;
        }),
      );
    };
    line(({ outside }) => outside.coldHealthyMs, '');
    line(({ outside }) => outside.restartHealthyMs, ' stroke-dasharray="6 4"');
    parts.push(
      text(MARGIN.left + 10, MARGIN.top + 18 + 18 * number, `${proxy}: first start —, restart - -`, 'start', colour),
    );
  }
  parts.push(
    text(WIDTH / 2, 22, 'Process start to healthy', 'middle'),
    text(WIDTH / 2, HEIGHT - 16, 'endpoints', 'middle'),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function grid(across: Scale, up: Scale): readonly string[] {
  const bottom = HEIGHT - MARGIN.bottom;
  return [
    ...across.marks.flatMap((value) => {
      const x = across.at(value).toFixed(1);
      return [
        `<line x1="${x}" y1="${MARGIN.top}" x2="${x}" y2="${bottom}" stroke="#ddd"/>`,
        text(across.at(value), bottom + 20, value.toLocaleString('en-US'), 'middle'),
      ];
    }),
    ...up.marks.flatMap((value) => {
      const y = up.at(value).toFixed(1);
      return [
        `<line x1="${MARGIN.left}" y1="${y}" x2="${WIDTH - MARGIN.right}" y2="${y}" stroke="#ddd"/>`,
        text(MARGIN.left - 8, up.at(value) + 4, value >= 1000 ? `${value / 1000} s` : `${value} ms`, 'end'),
      ];
    }),
  ];
}

/** A logarithmic scale from the power of ten below the values to the one above them. */
function scale(values: readonly number[], from: number, to: number): Scale {
  const low = Math.floor(Math.log10(Math.max(1, Math.min(...values))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return {
    at: (value) => from + ((Math.log10(Math.max(1, value)) - low) / (high - low)) * (to - from),
    marks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
  };
}

function text(x: number, y: number, content: string, anchor: string, colour = '#333'): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour}">${content}</text>`;
}
