import type { IPAddress } from '../../src/base/ip.js';
import type { Config } from '../../src/config/config.js';
import { LINUX_MODES } from '../../src/config/effective.js';
import type { ModeDefinition } from '../../src/dataplane/mode.js';
import type { NativeAddon } from '../../src/native/contract.js';
import type { StateChange } from '../../src/state/writer.js';
import { fromFile, WINDOWS } from '../config/load-from.js';
import type { KernelVerdict } from './courses.js';
import type { FakeFlows } from './fake-kernel/flows.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import type { SeededRandom } from './random.js';

/** A kernel on which a story is told in one mode. Processes come and go on it. */
export interface ScenarioWorld {
  /** What processes reach it by. */
  readonly addon: NativeAddon;
  /** Null: the platform has no conntrack. */
  readonly flows: FakeFlows | null;
  /** How many transactions happened. */
  readonly transactions: number;
  /** Forgets what it was asked to do, which tests look at: a test of memory has no use for it. */
  forgetCalls(): void;
  /** Where what the mode has in the kernel sends the first packet of a connection. Throws when it does what none of ours should. */
  /** @param weighted whether endpoints may have other shares than equal ones; without it a mode that knows the shares throws. */
  verdict(packet: KernelPacket, localAddresses: readonly IPAddress[], weighted?: boolean): KernelVerdict;
  /** Lets a connection happen to one of the endpoints that its first packet may go to, `address:port`, and remembers what the kernel notes of it. */
  connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void;
  /** What the machine has by itself of objects that are about to be told, such as pods of this node; absent: nothing of the mode's concern. */
  follow?(changes: readonly StateChange[], nodeName: string): void;
  /** Pods end that no slice has any more; absent: as above. */
  endPods?(): void;
  /** Somebody else does something to the kernel, so that nobody can be sure of it. */
  touch(): void;
  /** Somebody else changes what the mode has in the kernel, or adds to it; absent: nothing of the kind is known here. */
  harm?(random: SeededRandom): void;
  /** Lets one call in ten fail. */
  failAtRandom(random: SeededRandom): void;
  /** Lets transactions to come happen while their answers are lost. */
  loseAnswers(count: number): void;
  /** Forgets faults that nothing has met. */
  failNoMore(): void;
  /** What of the mode's is there and of no use, a line each. */
  leftovers(): readonly string[];
  /** What there is, a line each: the same for the same plan, whatever happened before. Memories of clients are not in it. */
  contents(): readonly string[];
}

/** A mode in which every story is told. To tell them in one more, give it this and put it into scenario-modes.ts. */
export interface ScenarioMode {
  readonly definition: ModeDefinition;
  /** A process that dies between the kernel's answer and the removal of flows leaves those of frontends that are gone; its README says so. */
  readonly forgetsGoneFlows: boolean;
  /** Whether its dataplane can say where a client is remembered to go. */
  readonly tellsRemembered: boolean;
  /** A kernel that holds nothing yet, on a node with these addresses. */
  readonly world: (localAddresses: readonly IPAddress[]) => ScenarioWorld;
}

const configs = new Map<string, Config>();

/** What the modes are configured with; what a story says of the node is not among it. Every process of a mode has the same, which is read once. */
export function scenarioConfig(mode: Pick<ScenarioMode, 'definition'>): Config {
  const { name } = mode.definition;
  const config = configs.get(name) ?? loadedConfig(mode);
  configs.set(name, config);
  return config;
}

function loadedConfig({ definition: { name, platforms } }: Pick<ScenarioMode, 'definition'>): Config {
  if (platforms.includes('win32')) return fromFile('winkernel: {networkName: cbr0}', [], WINDOWS).config;
  const mode = LINUX_MODES.some((each) => each === name) ? `mode: ${name}` : '';
  return fromFile(mode, ['--iptables-flavor=nft']).config;
}
