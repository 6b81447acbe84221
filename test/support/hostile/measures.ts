import { readFile, rm } from 'node:fs/promises';
import type { Lab } from '../lab/lab.js';
import type { Manifest } from '../lab/objects.js';
import type { Proxy } from '../lab/proxy.js';
import { PROGRAM } from '../program.js';

/** How long something took, in milliseconds. */
export interface Took {
  /**
   * The smaller of time and processor time, as other processes make the one longer and idle cores the other. Processor time is that of all threads and of
   * the programs that it started. Some of them run beside each other and beside other processes that share their caches: it counts half.
   */
  readonly own: number;
  /** By the clock: it shows a process that waits and takes no processor time, and how busy the machine is. */
  readonly passed: number;
}

const NO_TIME: Took = { own: 0, passed: 0 };

async function duration(pid: number, work: () => Promise<unknown>): Promise<Took> {
  const [began, cpu] = [Date.now(), await processTime(pid)];
  await work();
  const passed = Date.now() - began;
  return { own: Math.min(passed, ((await processTime(pid)) - cpu) / 2), passed };
}

function longer(one: Took, other: Took): Took {
  return { own: Math.max(one.own, other.own), passed: Math.max(one.passed, other.passed) };
}

/** Processor time of a process and its children so far, in milliseconds: proc_pid_stat(5), in ticks of 10 ms. */
async function processTime(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return 10 * fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
}

/** Asks for health again and again; answers how long the longest answer took. */
function watchHealth(lab: Lab, pid: number): () => Promise<Took> {
  const stopper = new AbortController();
  const asking = (async () => {
    let longest = NO_TIME;
    while (!stopper.signal.aborted) {
      const took = await duration(pid, () => lab.http('node', 'http://127.0.0.1:10256/livez', 60_000));
      longest = longer(longest, took);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return longest;
  })();
  return () => {
    stopper.abort();
    return asking;
  };
}

/** Asks for pages again and again; answers how long the longest answer took, and which answers were none. */
export function watchPages(
  lab: Lab,
  pid: number,
  paths: readonly string[],
): () => Promise<{ readonly longest: Took; readonly failed: readonly string[] }> {
  const stopper = new AbortController();
  const asking = (async () => {
    const failed: string[] = [];
    let longest = NO_TIME;
    while (!stopper.signal.aborted && paths.length > 0) {
      for (const path of paths) {
        const ask = async (): Promise<void> => {
          const answer = await lab.http('node', `http://127.0.0.1:10249/${path}`, 60_000);
          // Before its Service is read there is none.
          if (!('status' in answer) || ![200, 404].includes(answer.status))
            failed.push(`${path}: ${JSON.stringify(answer)}`);
        };
        longest = longer(longest, await duration(pid, ask));
      }
    }
    return { longest, failed };
  })();
  return () => {
    stopper.abort();
    return asking;
  };
}

interface Measured {
  readonly health: Took;
  readonly change: Took;
}

/** Writes objects, and with them another Service, until that is in the kernel. */
export async function measure(lab: Lab, proxy: Proxy, steps: Iterable<readonly Manifest[]>): Promise<Measured> {
  const { pid } = await proxy.status();
  const health = watchHealth(lab, pid);
  let longest = NO_TIME;
  for (const objects of steps) {
    await proxy.write(objects);
    longest = longer(longest, await duration(pid, () => proxy.synced()));
  }
  return { health: await health(), change: longest };
}

/**
 * Bytes of all objects in a heap snapshot, which V8 takes after a collection. The size of the heap afterwards includes garbage: of snapshots that differed by
 * 0.1 MB it was 13.9 to 18.9 MB.
 */
export async function heapBytes(lab: Lab, proxy: Proxy): Promise<number> {
  const path = `${proxy.statusSocket}.heap`;
  await lab.output('node', [PROGRAM, 'status', '--heap-snapshot', path, '--status-socket', proxy.statusSocket]);
  const { snapshot, nodes } = JSON.parse(await readFile(path, 'utf8')) as HeapSnapshot;
  await rm(path);
  const fields = snapshot.meta.node_fields;
  const size = fields.indexOf('self_size');
  return nodes.reduce((sum, value, index) => (index % fields.length === size ? sum + value : sum), 0);
}

interface HeapSnapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: readonly string[] } };
  /** The fields of all nodes, one node after the other. */
  readonly nodes: readonly number[];
}
