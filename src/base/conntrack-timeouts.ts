/** How long conntrack keeps the flows of each state, in seconds, by nft's words for the states. */
export interface ConntrackTimeouts {
  readonly tcp: Readonly<Record<TcpState, number>>;
  readonly udp: Readonly<Record<UdpState, number>>;
}

/** In the order of nfnetlink_cttimeout's attributes. */
export const TCP_STATES = [
  'syn_sent',
  'syn_recv',
  'established',
  'fin_wait',
  'close_wait',
  'last_ack',
  'time_wait',
  'close',
  'syn_sent2',
  'retrans',
  'unack',
] as const;
export const UDP_STATES = ['unreplied', 'replied'] as const;

export type TcpState = (typeof TCP_STATES)[number];
export type UdpState = (typeof UDP_STATES)[number];

/** What the kernel begins with (tcp_timeouts, udp_timeouts). */
export const BUILT_IN_TIMEOUTS: ConntrackTimeouts = {
  tcp: {
    syn_sent: 120,
    syn_recv: 60,
    established: 432_000,
    fin_wait: 120,
    close_wait: 60,
    last_ack: 30,
    time_wait: 120,
    close: 10,
    syn_sent2: 120,
    retrans: 300,
    unack: 300,
  },
  udp: { unreplied: 30, replied: 120 },
};

/** Protocols whose clients retry by themselves when there is no answer. */
export const DNS_PORT = 53;

/**
 * After how many seconds an attempt that no endpoint has answered goes to another one; null: it stays. `dns` is UDP port 53, whose clients ask again
 * by themselves.
 */
export interface RetryTimes {
  readonly tcp: number | null;
  readonly dns: number | null;
}

export const NO_RETRIES: RetryTimes = { tcp: null, dns: null };
