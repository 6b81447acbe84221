import { messageOf } from '../../base/error-message.js';
import {
  HCN_ENDPOINT_FLAGS,
  type HcnAddon,
  type HcnEndpoint,
  type HcnLoadBalancer,
  type HcnOperation,
} from '../../native/contract.js';
import type { NativeError } from '../../native/errors.js';
import type { Ledger } from '../ledger.js';
import { settingsOf, type LoadBalancer } from './load-balancers.js';
import type { Ledgers } from './ledgers.js';
import type { LoadBalancerKey, EndpointKey, MadeEndpoint, Network } from './listing.js';
import type { Modifying } from './modifying.js';
import { ownId } from './names.js';
import { isPassing } from './passing.js';

interface WriterParts {
  readonly hcn: Pick<HcnAddon, 'hcnApply'>;
  readonly ledgers: Ledgers;
  readonly modifying: Modifying;
  /** Whether HNS may change the load balancer in place, where it can. */
  readonly inPlace: (key: LoadBalancerKey) => boolean;
  /** Called with what is sent. */
  readonly onOperations: (operations: readonly HcnOperation[]) => void;
  readonly onRefused: RefusedLoadBalancer;
}

/** Called with each operation of a load balancer that HNS refused, and with what it held before. */
export type RefusedLoadBalancer = (
  operation: HcnOperation['type'],
  key: LoadBalancerKey,
  held: LoadBalancer | undefined,
  error: NativeError,
) => void;

type Answer = string | NativeError;

/** A load balancer that is gone although another was to take its place. */
interface Lost {
  readonly key: LoadBalancerKey;
  readonly before: LoadBalancer;
  /** Why HNS refused the other. */
  readonly reason: string;
}

/** HNS holds something else than was thought. */
const OUTDATED: ReadonlySet<string> = new Set([
  'ERROR_ALREADY_EXISTS',
  'ERROR_NOT_FOUND',
  'HCN_E_ENDPOINT_NOT_FOUND',
  'HCN_E_NETWORK_NOT_FOUND',
  'HCN_E_OBJECT_USED_AFTER_UNLOAD',
  'HCN_E_PORT_ALREADY_EXISTS',
]);
const GONE: ReadonlySet<string> = new Set(['ERROR_NOT_FOUND', 'HCN_E_ENDPOINT_NOT_FOUND']);
/** This HNS does not know how to modify a load balancer. */
const UNKNOWN_CALL: ReadonlySet<string> = new Set([
  'E_NOTIMPL',
  'ERROR_NOT_SUPPORTED',
  'ERROR_PROC_NOT_FOUND',
  'HCN_E_REQUEST_UNSUPPORTED',
]);

function is(codes: ReadonlySet<string>, { errno }: NativeError): boolean {
  return errno !== null && codes.has(errno);
}

/**
 * Sends what is pending in the ledgers, and enters HNS's answers. Each operation has an answer of its own, so a refused
 * object does not block the others. An object that HNS refuses is quarantined. A failure that may pass rejects once all else
 * was sent.
 */
export class Writer {
  /** Calls that changed something, and operations of them. */
  calls = 0;
  operations = 0;
  /** Whether a refusal came from an unexpected state of HNS: the object is still pending, and HNS has to be read. */
  isOutdated = false;
  /** The former state of load balancers that HNS reported as changed in place and that were not listed since. */
  readonly modified = new Map<LoadBalancerKey, LoadBalancer>();
  private readonly failures: unknown[] = [];
  private isRead = false;

  constructor(private readonly parts: WriterParts) {}

  /** @param isRead whether everything has just been read: then an unexpected state of HNS is the object's own fault. */
  begin(isRead: boolean): void {
    this.isRead = isRead;
    this.isOutdated = false;
    this.failures.length = 0;
  }

  /** Throws the first failure since {@link begin}. */
  finish(): void {
    const [first] = this.failures.splice(0);
    if (first !== undefined) throw first instanceof Error ? first : new Error(messageOf(first));
  }

  /** Makes endpoints that HNS does not have. */
  async makeEndpoints(network: Network, keys: readonly EndpointKey[]): Promise<void> {
    const { endpoints, endpointIds } = this.parts.ledgers;
    const jobs = keys.flatMap((key) => {
      const wanted = endpoints.desired(key);
      return wanted === undefined ? [] : [{ key, operations: [endpointCreation(network, key, wanted)] }];
    });
    await this.exchange(endpoints, jobs, (key, [answer]) => {
      if (typeof answer === 'string') endpointIds.set(key, answer);
      else if (answer !== undefined) this.refuse(endpoints, key, undefined, answer);
    });
  }

  /** Removes endpoints, also those that are to be others: they are then pending again. */
  async removeEndpoints(keys: readonly EndpointKey[]): Promise<void> {
    const { endpoints, endpointIds } = this.parts.ledgers;
    const jobs = keys.map((key) => ({
      key,
      before: endpoints.acknowledged.get(key),
      operations: [{ type: 'delete', kind: 'endpoint', id: endpointIds.get(key) ?? '' } as const],
    }));
    await this.exchange(endpoints, jobs, (key, [answer], { before }) => {
      const isGone = typeof answer === 'string' || answer === undefined || is(GONE, answer);
      endpoints.readBack(key, isGone ? undefined : before);
      if (isGone) endpointIds.delete(key);
      else this.refuse(endpoints, key, before, answer);
    });
  }

  /** Makes, changes and removes load balancers, in their present desired state. */
  async loadBalancers(keys: readonly LoadBalancerKey[]): Promise<void> {
    const { loadBalancers, loadBalancerIds } = this.parts.ledgers;
    const jobs = keys.map((key) => ({
      key,
      before: loadBalancers.acknowledged.get(key),
      operations: this.loadBalancerOperations(key),
    }));
    const lost: Lost[] = [];
    await this.exchange(loadBalancers, jobs, (key, answers, { before, operations }) => {
      let held = before;
      let refusal: NativeError | null = null;
      for (const [index, { type }] of operations.entries()) {
        const answer = answers[index];
        if (answer === undefined) continue;
        const isDone = typeof answer === 'string' || (type === 'delete' && is(GONE, answer));
        if (!isDone) {
          refusal ??= answer;
          this.parts.onRefused(type, key, before, answer);
        }
        if (type === 'delete' && isDone) loadBalancerIds.delete(key);
        if (type === 'modify' && isDone) this.noteModified(key, before);
        else this.modified.delete(key);
        if (type === 'delete') held = isDone ? undefined : held;
        else if (typeof answer === 'string') {
          loadBalancerIds.set(key, answer);
          held = loadBalancers.acknowledged.get(key);
        } else if (type === 'modify' && is(GONE, answer)) held = undefined;
      }
      if (refusal === null) return;
      this.refuseLoadBalancer(key, held, refusal, operations[0]?.type === 'modify');
      const isLost = before !== undefined && held === undefined && loadBalancers.quarantined.has(key);
      if (isLost && loadBalancers.desired(key) !== undefined) lost.push({ key, before, reason: refusal.message });
    });
    await this.putBack(lost);
  }

  /** Load balancers that were deleted to make room for others, which HNS refused. */
  private async putBack(lost: readonly Lost[]): Promise<void> {
    if (lost.length === 0) return;
    const { ledgers, hcn, onOperations } = this.parts;
    const operations = lost.map(({ key, before }) => loadBalancerCreation(key, settingsOf(key, before)));
    onOperations(operations);
    const answers = await hcn.hcnApply(operations);
    this.calls++;
    this.operations += operations.length;
    for (const [index, { key, before, reason }] of lost.entries()) {
      const answer = answers[index];
      if (answer === undefined) continue;
      const isBack = typeof answer === 'string';
      if (!isBack) this.parts.onRefused('create', key, before, answer);
      if (isBack) {
        ledgers.loadBalancerIds.set(key, answer);
        ledgers.loadBalancers.readBack(key, before);
      }
      const outcome = isBack
        ? 'the former state was restored'
        : `nor can the former state be restored: ${answer.message}`;
      ledgers.loadBalancers.explain(key, `${reason}; ${outcome}`);
    }
  }

  private noteModified(key: LoadBalancerKey, before: LoadBalancer | undefined): void {
    if (before !== undefined && !this.modified.has(key)) this.modified.set(key, before);
  }

  private loadBalancerOperations(key: LoadBalancerKey): readonly HcnOperation[] {
    const { loadBalancers, loadBalancerIds } = this.parts.ledgers;
    const wanted = loadBalancers.desired(key);
    const id = loadBalancerIds.get(key);
    const removal: readonly HcnOperation[] = id === undefined ? [] : [{ type: 'delete', kind: 'loadBalancer', id }];
    if (wanted === undefined) return removal;
    const settings = settingsOf(key, wanted);
    if (id !== undefined && this.parts.modifying.isPossible && this.parts.inPlace(key))
      return [{ type: 'modify', kind: 'loadBalancer', id, settings }];
    return [...removal, loadBalancerCreation(key, settings)];
  }

  private refuseLoadBalancer(
    key: LoadBalancerKey,
    held: LoadBalancer | undefined,
    error: NativeError,
    isModification: boolean,
  ): void {
    const { loadBalancers } = this.parts.ledgers;
    if (isModification && is(UNKNOWN_CALL, error)) {
      this.parts.modifying.unsupported();
      loadBalancers.readBack(key, held);
      return;
    }
    this.refuse(loadBalancers, key, held, error);
  }

  /** One call. Afterwards its keys are as desired, except for what `enter` makes of the answers. When it rejects they are unknown. */
  private async exchange<Key, Value, Job extends { readonly key: Key; readonly operations: readonly HcnOperation[] }>(
    ledger: Ledger<Key, Value>,
    jobs: readonly Job[],
    enter: (key: Key, answers: readonly Answer[], job: Job) => void,
  ): Promise<void> {
    const operations = jobs.flatMap((job) => job.operations);
    if (operations.length === 0) return;
    const claim = ledger.claim(jobs.map(({ key }) => key));
    this.parts.onOperations(operations);
    let answers: readonly Answer[];
    try {
      answers = await this.parts.hcn.hcnApply(operations);
    } catch (error) {
      claim.lose();
      throw error;
    }
    claim.acknowledge();
    this.calls++;
    this.operations += operations.length;
    let at = 0;
    for (const job of jobs) enter(job.key, answers.slice(at, (at += job.operations.length)), job);
  }

  /** @param held what HNS holds of the key in truth. */
  private refuse<Key, Value>(ledger: Ledger<Key, Value>, key: Key, held: Value | undefined, error: NativeError): void {
    ledger.readBack(key, held);
    if (isPassing(error)) this.failures.push(error);
    else if (is(OUTDATED, error) && !this.isRead) this.isOutdated = true;
    else ledger.quarantine(key, error.message);
  }
}

function endpointCreation(network: Network, key: EndpointKey, { isRemote, mac, provider }: MadeEndpoint): HcnOperation {
  const policies = provider === null ? [] : [{ Type: 'ProviderAddress', Settings: { ProviderAddress: provider } }];
  const settings: HcnEndpoint = {
    HostComputeNetwork: network.id,
    IpConfigurations: [{ IpAddress: key }],
    ...(mac === '' ? {} : { MacAddress: mac }),
    ...(policies.length === 0 || !isRemote ? {} : { Policies: policies }),
    ...(isRemote ? { Flags: HCN_ENDPOINT_FLAGS.remote } : {}),
    SchemaVersion: { Major: 2, Minor: 0 },
  };
  const id = ownId(`endpoint ${network.id} ${JSON.stringify(settings)}`);
  return { type: 'create', kind: 'endpoint', network: network.id, id, settings };
}

function loadBalancerCreation(key: LoadBalancerKey, settings: HcnLoadBalancer): HcnOperation {
  return {
    type: 'create',
    kind: 'loadBalancer',
    id: ownId(`loadBalancer ${key} ${JSON.stringify(settings)}`),
    settings,
  };
}
