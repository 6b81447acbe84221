import { randomUUID } from 'node:crypto';
import type { HcnAddon, HcnChange, HcnKind, HcnListed, HcnObjects, HcnOperation } from '../../src/native/contract.js';
import type { NativeError } from '../../src/native/errors.js';

/** Objects of HNS without any of its rules: for what concerns the addon alone. */
export class HcnStore implements HcnAddon {
  readonly objects: { readonly [Kind in HcnKind]: Map<string, HcnObjects[Kind]> } = {
    network: new Map([['11111111-2222-3333-4444-555555555555', { Name: 'cbr0-ü-名', Type: 'L2Bridge' }]]),
    endpoint: new Map(),
    loadBalancer: new Map(),
  };
  readonly #listeners = new Set<(change: HcnChange) => void>();

  hcnVersion(): ReturnType<HcnAddon['hcnVersion']> {
    return Promise.resolve({ major: 15, minor: 4 });
  }

  hcnIds(kind: HcnKind): Promise<readonly string[]> {
    return Promise.resolve([...this.objects[kind].keys()]);
  }

  hcnList<Kind extends HcnKind>(kind: Kind, ids: readonly string[] | null): Promise<readonly HcnListed<Kind>[]> {
    const held = [...this.objects[kind]].filter(([id]) => ids === null || ids.includes(id));
    return Promise.resolve(held.map(([id, properties]) => ({ id, properties })));
  }

  hcnApply(operations: readonly HcnOperation[]): Promise<readonly (string | NativeError)[]> {
    return Promise.resolve(
      operations.map((operation) => {
        const id = operation.id ?? randomUUID();
        if (operation.type === 'delete') this.objects[operation.kind].delete(id);
        else this.objects[operation.kind].set(id, operation.settings);
        return id;
      }),
    );
  }

  hcnWatch(onChange: (change: HcnChange) => void): Promise<() => void> {
    this.#listeners.add(onChange);
    return Promise.resolve(() => this.#listeners.delete(onChange));
  }

  /** As when a network comes. */
  tell(change: HcnChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
