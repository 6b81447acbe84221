import { readFileSync } from 'node:fs';
import {
  BUILT_IN_TIMEOUTS,
  type ConntrackTimeouts,
  type TcpState,
  type UdpState,
} from '../../base/conntrack-timeouts.js';

const FOLDER = '/proc/sys/net/netfilter/nf_conntrack_';

/** Simultaneous opens (`syn_sent2`) have no sysctl. */
const TCP: Readonly<Record<Exclude<TcpState, 'syn_sent2'>, string>> = {
  syn_sent: 'tcp_timeout_syn_sent',
  syn_recv: 'tcp_timeout_syn_recv',
  established: 'tcp_timeout_established',
  fin_wait: 'tcp_timeout_fin_wait',
  close_wait: 'tcp_timeout_close_wait',
  last_ack: 'tcp_timeout_last_ack',
  time_wait: 'tcp_timeout_time_wait',
  close: 'tcp_timeout_close',
  retrans: 'tcp_timeout_max_retrans',
  unack: 'tcp_timeout_unacknowledged',
};
const UDP: Readonly<Record<UdpState, string>> = { unreplied: 'udp_timeout', replied: 'udp_timeout_stream' };

/** See {@link Host.conntrackTimeouts}. Twelve small files take some hundred microseconds. */
export function conntrackTimeouts(read: (path: string) => string = readText): ConntrackTimeouts {
  const { tcp, udp } = BUILT_IN_TIMEOUTS;
  const ofKernel = <State extends string>(
    names: Readonly<Record<State, string>>,
    builtIn: Readonly<Record<State, number>>,
  ): Record<State, number> => {
    const states = Object.keys(names) as State[];
    const values = states.map((state) => [state, secondsIn(read, names[state]) ?? builtIn[state]]);
    return Object.fromEntries(values) as Record<State, number>;
  };
  return { tcp: { ...tcp, ...ofKernel(TCP, tcp) }, udp: ofKernel(UDP, udp) };
}

/** Null: conntrack is not loaded, and begins with what is built in. */
function secondsIn(read: (path: string) => string, name: string): number | null {
  try {
    const seconds = Number(read(`${FOLDER}${name}`).trim());
    return Number.isSafeInteger(seconds) ? Math.max(0, seconds) : null;
  } catch {
    return null;
  }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}
