// What one who may write Services can do to a node: its health is answered, others' changes go on, and what is left out is reported.
import { readFile } from 'node:fs/promises';
import t, { type Test } from 'tap';
import { Lab } from '../support/lab/lab.js';
import { endpointSlice, service, type Manifest } from '../support/lab/objects.js';
import { IPV4 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

/** What is promised, in milliseconds. */
const HEALTH_MS = 1000;
const CHANGE_MS = 2000;
const MOST_BYTES = 700_000_000;

function ports(count: number): readonly { readonly name: string; readonly port: number }[] {
  return Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
}

function addresses(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `203.0.${index >> 8}.${index & 255}`);
}

function hostile(name: string, number: number, portCount: number, addressCount: number): Manifest {
  const clusterIPs = [IPV4.clusterIP(number)];
  return service(name, { clusterIPs, ports: ports(portCount), externalIPs: addresses(addressCount) });
}

function slices(name: string, endpoints: number, portCount: number): readonly Manifest[] {
  const all = Array.from({ length: endpoints }, (_, index) => ({ address: `10.9.${index >> 8}.${index & 255}` }));
  return Array.from({ length: endpoints / 1000 }, (_, index) =>
    endpointSlice(name, all.slice(1000 * index, 1000 * (index + 1)), ports(portCount), { name: `${name}-${index}` }),
  );
}

interface Row {
  readonly name: string;
  readonly objects: readonly Manifest[];
  /** What the status says of it. */
  readonly told: RegExp;
}

const ROWS: readonly Row[] = [
  {
    name: 'a Service of 96 kB',
    objects: [hostile('h', 61, 700, 1500)],
    told: /^over a limit: IPv4 default\/h: 1040700 of/,
  },
  {
    name: '1,000 ports × 1,000 external IPs',
    objects: [hostile('h', 61, 1000, 1000)],
    told: /^over a limit: IPv4 default\/h: 991000 of 1001000 frontends/,
  },
  { name: 'a Service of 346 kB', objects: [hostile('h', 61, 3000, 6000)], told: /^over a limit: IPv4 default\/h/ },
  {
    name: '100 ports × 5,000 endpoints',
    objects: [hostile('h', 61, 100, 0), ...slices('h', 5000, 100)],
    told: /^over a limit: IPv4 default\/h: 80 of 100 frontends/,
  },
  {
    name: 'two Services with thousands of conflicts',
    objects: [hostile('h', 61, 100, 90), hostile('i', 62, 100, 90)],
    told: /^conflict: IPv4 203\..*, one of 9000 frontends that both claim$/,
  },
];

/** Milliseconds; the smaller of the two, as other processes make the one longer and idle cores the other. */
async function duration(pid: number, work: () => Promise<unknown>): Promise<number> {
  const [began, cpu] = [Date.now(), await processTime(pid)];
  await work();
  return Math.min(Date.now() - began, (await processTime(pid)) - cpu);
}

/** Processor time of a process so far, in milliseconds: proc_pid_stat(5), in ticks of 10 ms. */
async function processTime(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/** Asks for health again and again; answers how long the longest answer took. */
function watchHealth(lab: Lab, pid: number): () => Promise<number> {
  const stopper = new AbortController();
  const asking = (async () => {
    let longest = 0;
    while (!stopper.signal.aborted) {
      const took = await duration(pid, () => lab.http('node', 'http://127.0.0.1:10256/livez', 60_000));
      longest = Math.max(longest, took);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return longest;
  })();
  return () => {
    stopper.abort();
    return asking;
  };
}

/** Writes objects, and with them another Service, until that is in the kernel. */
async function measure(
  lab: Lab,
  proxy: Proxy,
  steps: readonly (readonly Manifest[])[],
): Promise<{ readonly health: number; readonly change: number }> {
  const { pid } = await proxy.status();
  const health = watchHealth(lab, pid);
  let longest = 0;
  for (const objects of steps) {
    await proxy.write(objects);
    longest = Math.max(longest, await duration(pid, () => proxy.synced()));
  }
  return { health: await health(), change: longest };
}

async function check(t: Test, lab: Lab, proxy: Proxy, { objects, told }: Row): Promise<void> {
  const usual = await measure(lab, proxy, [[], [], []]);
  const lines = proxy.log.split('\n').length;
  const under = await measure(lab, proxy, [objects, objects, objects]);
  const { families, memory } = await proxy.status();
  const texts = families.flatMap(({ conflicts, shortfalls }) => [...conflicts, ...shortfalls]);
  t.ok(
    texts.some((text) => told.test(text)),
    texts.join('; ').slice(0, 500),
  );
  t.ok(memory.residentBytes < MOST_BYTES, `${memory.residentBytes} bytes`);
  const after = await measure(lab, proxy, [[], []]);
  for (const [when, took] of Object.entries({ under, after })) {
    t.ok(took.health <= HEALTH_MS, `${when}: health ${took.health} ms, usually ${usual.health}`);
    t.ok(took.change <= CHANGE_MS, `${when}: a change ${took.change} ms, usually ${usual.change}`);
  }
  t.ok(proxy.log.split('\n').length - lines < 100, 'the log is not filled');
}

t.test('hostile Services', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab);
  for (const row of ROWS) await t.test(row.name, (t) => check(t, lab, proxy, row));
});
