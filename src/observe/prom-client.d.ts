/**
 * The parts of prom-client that are used, each loaded by itself: its index brings OpenTelemetry, t-digests, clustering and a push gateway
 * along, nine megabytes of resident memory.
 */
declare module 'prom-client/lib/registry.js' {
  export { Registry as default } from 'prom-client';
}

declare module 'prom-client/lib/counter.js' {
  export { Counter as default } from 'prom-client';
}

declare module 'prom-client/lib/gauge.js' {
  export { Gauge as default } from 'prom-client';
}

declare module 'prom-client/lib/histogram.js' {
  export { Histogram as default } from 'prom-client';
}
