import type { Test } from 'tap';
import type { Lab } from './lab.js';
import type { Proxy } from './proxy.js';

/** Virtual services and their destinations as `ipvsadm` lists them, a line each, sorted. */
export async function servers(lab: Lab): Promise<readonly string[]> {
  return (await lab.output('node', ['ipvsadm', '-Sn'])).split('\n').sort();
}

/** That the last start found nothing to send. */
export async function nothingSent(t: Test, proxy: Proxy): Promise<void> {
  for (const { family, recentSyncs } of (await proxy.status()).families) {
    const sent = recentSyncs.map(({ transactions, elementOperations, ruleOperations }) => [
      ...[transactions, elementOperations, ruleOperations],
    ]);
    t.ok(sent.length > 0);
    t.same(
      sent.filter((numbers) => numbers.some((number) => number > 0)),
      [],
      `a restart sends nothing for ${family}`,
    );
  }
}
