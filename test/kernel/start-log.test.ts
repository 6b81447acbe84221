// A start at default verbosity, in each mode and from each source: no line that the user can do nothing about, and one at the end.
// needs: nft, iptables
import t from 'tap';
import { inFull } from '../support/extent.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { eventually, Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { node } from '../support/lab/objects.js';
import { dualStack } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });

/** Each source in one mode. */
function isUsual(mode: LabMode, source: string): boolean {
  return mode === (source === 'manifests' ? 'iptables-nft' : 'nftables');
}

const SERVING = /"serving 2 Services, 4 endpoints in \w+, healthy after \d+\.\d s" release="\S+" sources="\S+"/;

const MODES = ['nftables', 'iptables-nft', 'iptables-legacy'] as const;
const SOURCES = ['manifests', 'an API server'] as const;

for (const mode of MODES)
  for (const source of SOURCES)
    t.test(`the log of a start in mode ${mode} from ${source}`, isUsual(mode, source) ? {} : inFull, async (t) => {
      const lab = await Lab.start(t);
      const proxy = await Proxy.start(t, lab, {
        mode,
        objects: OBJECTS,
        flags: ['-v', '0'],
        // A user namespace may not write it.
        config: { oomScoreAdj: 0 },
        node: node(NODE_NAME, { addresses: Object.values(ADDRESSES.node), podCIDRs: ['10.244.1.0/24'] }),
        ...(source === 'manifests' ? {} : { cluster: await ControlPlane.start(t, lab) }),
      });
      const said = await eventually('that the start is over', () => Promise.resolve(SERVING.exec(proxy.log)));
      const lines = proxy.log.slice(0, said.index + said[0].length).split('\n');
      t.same(
        // What another kernel would do is something to act on.
        lines.filter((line) => /^[WE]\d/.test(line) && !line.includes('"limitation"')),
        [],
        'nothing to act on',
      );
      t.ok(
        lines.some((line) => /"starting" version="\S+" release="pointsman \d/.test(line)),
        'which version this is',
      );
      t.match(lines.at(-1), SERVING, 'the last line of the start');
      t.match(lines.at(-1), source === 'manifests' ? /sources="\S+manifests"/ : /sources="services,endpointslices,/);
      if (source === 'an API server')
        t.ok(
          lines.some((line) => /"API server" server="https?:\/\/\S+"/.test(line)),
          'the address of the API server',
        );
      // Two limitations of mode iptables are among them.
      t.ok(lines.length <= (mode === 'nftables' ? 6 : 8), `${lines.length} lines`);
      if (!t.passing()) t.comment(lines.join('\n'));
    });
