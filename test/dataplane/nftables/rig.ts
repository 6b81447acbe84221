import { BUILT_IN_TIMEOUTS, type ConntrackTimeouts } from '../../../src/base/conntrack-timeouts.js';
import type { Family } from '../../../src/base/ip.js';
import type { FamilyDataplane } from '../../../src/dataplane/contract.js';
import { nftablesDataplane } from '../../../src/dataplane/nftables/driver.js';
import type { NftElementsOperation, NftOperation, NftTransaction } from '../../../src/native/contract.js';
import type { PlanSettings } from '../../../src/plan/facts.js';
import type { Row } from '../../../src/state/rows.js';
import { loadCompiler } from '../../support/fake-kernel/compiler.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { FamilyRig, committedDuring } from '../../support/family-rig.js';
import { node, serviceCIDR, slice } from '../../support/rows.js';

export const compiler = loadCompiler();

/** This node, and where Services have their addresses. */
export const NODE_ROWS: readonly Row[] = [
  node('me', ['192.168.0.2', '2001:db8::1'], { zone: 'zone-a' }),
  serviceCIDR('kubernetes', ['10.96.0.0/12', 'fd00:96::/112']),
];

/** The endpoints of Service `web`, so many, none of them on this node. */
export function webOf(count: number): Row {
  return slice(
    'web',
    Array.from({ length: count }, (_, index) => ({ address: `10.0.1.${index + 1}`, node: 'other' })),
  );
}

/** One family of one process in nftables mode, on a fake kernel. */
export class Rig extends FamilyRig<FakeKernel, FamilyDataplane> {
  /** Milliseconds. */
  now = 0;
  /** So much later is each look at the clock than the one before, in milliseconds. */
  step = 0;
  /** Of the next process: whether it counts refused packets. */
  countsRefused = false;
  /** The sysctls in force. */
  timeouts: ConntrackTimeouts = BUILT_IN_TIMEOUTS;
  dataplane = this.process();

  constructor(
    kernel: FakeKernel = new FakeKernel(compiler),
    family: Family = 'IPv4',
    settings: Partial<PlanSettings> = {},
  ) {
    super(kernel, family, {}, settings);
  }

  /** Transactions committed while something was done. */
  during(work: () => Promise<unknown>): Promise<readonly NftTransaction[]> {
    return committedDuring(this.kernel, work);
  }

  /** On a clock that only the test moves: no search for clients takes long, however busy the machine is. */
  protected process(): FamilyDataplane {
    return nftablesDataplane(
      this.kernel,
      this.family,
      undefined,
      undefined,
      () => (this.now += this.step),
      this.countsRefused,
      () => this.timeouts,
    );
  }

  /** Somebody else did something to the ruleset. */
  protected mistrust(): void {
    this.kernel.touch();
  }
}

/** Commands of transactions as `add chain dispatch`, `add rule dispatch`, in order. */
export function commandsOf(transactions: readonly NftTransaction[]): readonly string[] {
  return transactions.flatMap(({ operations }) =>
    operations.flatMap((operation) => {
      if (operation.type !== 'commands') return [];
      type Objects = Readonly<Record<string, { readonly name?: string; readonly chain?: string }>>;
      return operation.commands.flatMap((command) =>
        Object.entries(command as Readonly<Record<string, Objects>>).flatMap(([verb, objects]) =>
          Object.entries(objects).map(([kind, body]) => `${verb} ${kind} ${body.name ?? body.chain ?? ''}`),
        ),
      );
    }),
  );
}

export function elementsOf(transactions: readonly NftTransaction[]): readonly NftElementsOperation[] {
  return transactions.flatMap(({ operations }) => operations.filter((operation) => operation.type === 'elements'));
}

/** `add frontends 1` per operation. */
export function elementLines(transactions: readonly NftTransaction[]): readonly string[] {
  return elementsOf(transactions).map(({ verb, set, count }) => `${verb} ${set.replace(/-\d+$/, '')} ${count}`);
}

type Command = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export const where = { family: 'ip', table: 'kube-proxy' } as const;

/** Somebody else's transaction. */
export async function change(kernel: FakeKernel, ...operations: readonly (Command | NftOperation)[]): Promise<void> {
  await kernel.nftTransact({
    ...where,
    operations: operations.map((operation) =>
      isOperation(operation) ? operation : { type: 'commands', commands: [operation] },
    ),
  });
}

function isOperation(operation: Command | NftOperation): operation is NftOperation {
  return operation.type === 'commands' || operation.type === 'elements';
}

/** One element, its bytes in hexadecimal. */
export function element(
  verb: 'add' | 'delete',
  set: string,
  key: string,
  data: string | null = null,
  chain: string | null = null,
): NftOperation {
  const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
  return {
    type: 'elements',
    verb,
    set,
    count: 1,
    keyLength: bytes(key).length,
    keys: bytes(key),
    keyEnds: null,
    dataLength: data === null ? 0 : bytes(data).length,
    data: data === null ? null : bytes(data),
    gotoChains: chain === null ? null : [chain],
    comments: null,
  };
}
