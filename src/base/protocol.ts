/** Transport protocols a Service port may name, with their IANA numbers. */

export type Protocol = 'TCP' | 'UDP' | 'SCTP';

export const PROTOCOLS: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

const NUMBERS: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };

export function parseProtocol(text: string): Protocol | null {
  return PROTOCOLS.find((protocol) => protocol === text) ?? null;
}

/** IANA protocol number. */
export function protocolNumber(protocol: Protocol): number {
  return NUMBERS[protocol];
}

export function protocolFromNumber(number: number): Protocol | null {
  return PROTOCOLS.find((protocol) => NUMBERS[protocol] === number) ?? null;
}

/** The API server's default for --service-node-port-range. */
export const DEFAULT_NODE_PORTS = { first: 30_000, last: 32_767 } as const;

/** Whether a number is a port: 1–65535. */
export function isPort(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= 65535;
}
