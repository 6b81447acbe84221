// A long random history with faults: plan, kernel and packets agree all along, and memory does not grow.
// POINTSMAN_ENDURANCE_SECONDS (60, in `npm test` 15) is how long, POINTSMAN_ENDURANCE_SEED repeats a history.
// needs: conntrack
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { usually } from '../support/extent.js';
import { describeOutcome, endpoint, Lab, type Outcome, type Traffic } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS, type FamilyView } from '../support/lab/packet-table.js';
import { faulty } from '../support/lab/kernel-faults.js';
import { Proxy } from '../support/lab/proxy.js';
import { SeededRandom } from '../support/random.js';

const SECONDS = Number(process.env['POINTSMAN_ENDURANCE_SECONDS'] ?? usually(8, 60));
const SEED = Number(process.env['POINTSMAN_ENDURANCE_SEED'] ?? Date.now() % 1_000_000);
const FAULT_RATE = 0.05;
/** With faults a write may take several attempts, on a busy machine. */
const PATIENCE_MS = 100_000;
const MEMORY_GROWTH_KB = 24 * 1024;

const PODS = ['pod-a', 'pod-b', 'remote-a', 'remote-b'] as const;
type Pod = (typeof PODS)[number];
const SERVICES = 12;
const STEADY = 40;

interface Service {
  readonly endpoints: readonly Pod[];
  readonly affinitySeconds: number | null;
  readonly port: number;
  readonly nodePort: boolean;
  readonly local: boolean;
}

function draw(random: SeededRandom): Service {
  return {
    endpoints: random.some(PODS, 0.5),
    affinitySeconds: random.pick([null, null, 60, 600]),
    port: random.pick([80, 81]),
    nodePort: random.chance(0.5),
    local: random.chance(0.3),
  };
}

function manifests(services: ReadonlyMap<number, Service>): Manifest[] {
  const steady = dualStack('steady', { number: STEADY, ports: [{ port: 80 }], endpoints: ['pod-a', 'remote-a'] });
  const drawn = [...services].flatMap(([index, { endpoints, affinitySeconds, port, nodePort, local }]) =>
    dualStack(`s${index}`, {
      number: STEADY + 1 + index,
      ports: [{ port, targetPort: 80, ...(nodePort ? { nodePort: 31000 + index } : {}) }],
      endpoints,
      ...(nodePort ? { type: 'NodePort', externalTrafficPolicy: local ? 'Local' : 'Cluster' } : {}),
      ...(affinitySeconds === null ? {} : { affinitySeconds }),
    }),
  );
  return [...steady, ...drawn];
}

/** One step of the history: some Services come, go or change. */
function step(random: SeededRandom, services: Map<number, Service>): number {
  let last = 0;
  for (let changes = 1 + random.below(4); changes > 0; changes--) {
    last = random.below(SERVICES);
    if (random.chance(0.2)) services.delete(last);
    else services.set(last, draw(random));
  }
  return last;
}

/** What is wrong with the answers to a Service, and what the kernel has on its address; null when all is well. */
async function misled(
  lab: Lab,
  index: number,
  service: Service | undefined,
): Promise<{ readonly what: string; readonly flows: readonly string[]; readonly rules: readonly string[] } | null> {
  for (const view of FAMILY_VIEWS) {
    const address = view.clusterIP(STEADY + 1 + index);
    const to = endpoint(address, service?.port ?? 80);
    const what = await wrongAnswer(lab, view, to, service);
    if (what === null) continue;
    const about = (lines: readonly string[]): readonly string[] => lines.filter((line) => line.includes(address));
    const [flows, ruleset] = [await lab.flows(view.family), await lab.ruleset()];
    return { what: `${to}: ${what}`, flows: about(flows), rules: about(ruleset.split('\n')) };
  }
  return null;
}

async function wrongAnswer(
  lab: Lab,
  view: FamilyView,
  to: string,
  service: Service | undefined,
): Promise<string | null> {
  if (service === undefined) {
    const answer = await lab.request({ from: 'pod-c', to, timeoutMs: 100 });
    return 'name' in answer ? `${answer.name}, although there is no such Service` : null;
  }
  const outcomes = await lab.burst({ from: 'pod-c', to, timeoutMs: 2000 }, 8, 2);
  const right = service.endpoints.map((pod) => endpoint(view.address(pod), 80));
  const found = outcomes.map((outcome) => `${describeOutcome(outcome)} (${outcome.count})`);
  const isRight = (outcome: Outcome): boolean =>
    'error' in outcome ? right.length === 0 && outcome.error === 'refused' : right.includes(outcome.at);
  return outcomes.every(isRight) ? null : `${found.join()}, not ${right.join()}`;
}

async function residentKilobytes(pid: number | null): Promise<number> {
  const status = await readFile(`/proc/${String(pid)}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[values.length >> 1] ?? 0;
}

t.test(`${SECONDS} s of random changes with faults end in the right state`, async (t) => {
  t.comment(`POINTSMAN_ENDURANCE_SEED=${SEED}`);
  const random = new SeededRandom(SEED);
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const services = new Map<number, Service>();
  for (let index = 0; index < SERVICES; index++) services.set(index, draw(random));
  const proxy = await Proxy.start(t, lab, {
    objects: manifests(services),
    config: { nftables: { syncPeriod: '5s' } },
    env: faulty({ rate: FAULT_RATE, seed: SEED }),
  });
  const traffic = FAMILY_VIEWS.map((view): Traffic => ({
    from: 'pod-b',
    to: endpoint(view.clusterIP(STEADY), 80),
    timeoutMs: 3000,
  }));
  const watches = await Promise.all(traffic.map((each) => lab.watch(each, 1, 10)));
  const memory: number[] = [];
  const deadline = Date.now() + SECONDS * 1000;
  let steps = 0;
  // On a busy machine a step may take seconds: so few would say nothing.
  while (Date.now() < deadline || steps < SECONDS / 5) {
    const changed = step(random, services);
    // Also written while the one before is under way.
    if (random.chance(0.3)) {
      await proxy.write(manifests(services));
      step(random, services);
    }
    await proxy.write(manifests(services));
    await proxy.synced(PATIENCE_MS);
    const service = services.get(changed);
    let wrong = await misled(lab, changed, service);
    // Clients of endpoints that are gone are looked for beside the syncs where that took long before, as on a busy machine: until then they go where they went.
    const isSticky = (service?.affinitySeconds ?? null) !== null;
    const patience = Date.now() + PATIENCE_MS;
    while (wrong !== null && isSticky && Date.now() < patience) wrong = await misled(lab, changed, service);
    if (wrong !== null) t.fail(`step ${steps}: ${wrong.what}`, wrong);
    if (steps % 10 === 0) await proxy.consistent();
    if (steps % 100 === 0) t.comment(`${steps} steps`);
    memory.push(await residentKilobytes(proxy.pid));
    steps++;
  }
  await proxy.consistent();
  const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  t.same(
    outcomes.filter((outcome) => 'error' in outcome),
    [],
    'a Service that nothing happens to never notices',
  );
  const failures = [...proxy.log.matchAll(/\(injected\)/g)].length;
  t.comment(`${steps} steps`);
  t.ok(failures > 0, `${failures} faults were felt`);
  const [early, late] = [memory.slice(memory.length >> 2, memory.length >> 1), memory.slice((memory.length * 3) >> 2)];
  t.ok(median(late) - median(early) < MEMORY_GROWTH_KB, `memory: ${median(early)} KB, then ${median(late)} KB`);
});
