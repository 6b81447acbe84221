import type { Case } from '../case.js';
import { ENDPOINT_CASES } from './endpoints.js';
import { FRONTEND_CASES } from './frontends.js';
import { MASQUERADE_CASES } from './masquerade.js';
import { NODE_PORT_CASES } from './node-ports.js';
import { POLICY_CASES } from './policies.js';
import { SOURCE_RANGE_CASES } from './source-ranges.js';

/** In the order in which they get their addresses. */
export const CASES: readonly Case[] = [
  ...ENDPOINT_CASES,
  ...FRONTEND_CASES,
  ...POLICY_CASES,
  ...SOURCE_RANGE_CASES,
  ...NODE_PORT_CASES,
  ...MASQUERADE_CASES,
];

/** Cases that need no process of their own: no configuration changes them. */
export const SHARED: readonly Case[] = CASES.filter(({ own }) => own === undefined);

/** Whether something else on the node uses nf_tables in it. */
export function startsNft({ steps }: Case): boolean {
  return steps.some(({ acts = [] }) => acts.some((act) => 'run' in act && act.run[0] === 'nft'));
}
