// Faults that need a kernel of their own: in mode ipvs, and a table of connections that is full.
// needs: iptables, ip_vs
import { readFile, writeFile } from 'node:fs/promises';
import t from 'tap';
import { Lab } from '../../support/lab/lab.js';
import { dualStack } from '../../support/lab/packet-table.js';
import { Proxy } from '../../support/lab/proxy.js';
import { faultsThatEndStarts, laterFaults, without } from '../fault-scene.js';
import { flushedChain } from '../flushed-chain.js';

/** Belongs to the whole kernel. */
const MAX = '/proc/sys/net/netfilter/nf_conntrack_max';
const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });

t.test('table of faults, ipvs with iptables-legacy: a flushed chain is named and repaired', (t) =>
  flushedChain(t, 'ipvs-legacy'),
);

t.test('table of faults, ipvs with iptables-legacy: a missing CAP_NET_ADMIN is named', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.prepare(t, lab);
  await proxy.write(OBJECTS);
  await faultsThatEndStarts(t, { lab, proxy }, [
    {
      name: 'in mode ipvs',
      by: without('net_admin'),
      flags: ['--proxy-mode', 'ipvs'],
      says: [/EPERM|Permission denied/, /CAP_NET_ADMIN/],
    },
  ]);
});

t.test('table of faults, ipvs with iptables-legacy: a full conntrack table is named', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { mode: 'ipvs-legacy', objects: OBJECTS });
  const before = await readFile(MAX, 'utf8');
  t.teardown(() => writeFile(MAX, before));
  await laterFaults(t, { lab, proxy }, [
    {
      name: 'it drops',
      make: async () => {
        await writeFile(MAX, '2');
        for (let port = 0; port < 8; port++)
          await lab.request({ from: 'pod-b', to: '10.96.0.41:80', timeoutMs: 100 }).catch(() => undefined);
      },
      undo: () => writeFile(MAX, before),
      command: ['status'],
      says: [
        /the connection table has \d+ of 2 entries: new connections are dropped when it is full/,
        /[1-9]\d* packets were dropped .* as the connection table was full/,
        /remedy: raise net\.netfilter\.nf_conntrack_max/,
      ],
    },
  ]);
});
