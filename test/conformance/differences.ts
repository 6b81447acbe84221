import type { Family } from '../../src/base/ip.js';
import { configuredMode, type LabMode } from '../support/lab/mode.js';

/** Where packets meet something else than in mode nftables, and which text has it. */
interface Difference {
  readonly modes: readonly ('iptables' | 'ipvs')[];
  readonly family?: Family;
  /** An id of docs/develop/behaviour.md, or the start of a line of docs/differences.md. */
  readonly see: string;
}

/** The only place of the kit that names modes. */
export const DIFFERENCES = {
  'unused ports are left alone': { modes: ['iptables'], see: 'VD-15' },
  'unused addresses are left alone': { modes: ['iptables'], see: 'VD-16' },
  'unused external ports are refused': { modes: ['ipvs'], see: 'VD-17' },
  'node ports on 127.0.0.1': { modes: ['iptables'], family: 'IPv4', see: 'SV-35' },
  'policy Local prefers this node': { modes: ['ipvs'], see: 'IV-03' },
  'connections drain': { modes: ['ipvs'], see: 'IV-04' },
  'the node is masqueraded': { modes: ['ipvs'], see: 'IV-22' },
} as const satisfies Record<string, Difference>;

export type DifferenceName = keyof typeof DIFFERENCES;

/** Whether it applies to packets of that family in that mode. */
export function applies(name: DifferenceName, mode: LabMode, family: Family): boolean {
  const { modes, family: only }: Difference = DIFFERENCES[name];
  return modes.some((each) => each === configuredMode(mode).name) && (only ?? family) === family;
}
