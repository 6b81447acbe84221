// pointsman explain and status as their user has them: the real program beside a running process.
// needs: iptables
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { ProcessStatus } from '../../src/observe/process-status.js';
import type { ServicesPage } from '../../packages/page/src/api.js';
import type { ExplainedPacket } from '../../src/serve/explain-packet.js';
import { inFull, usually } from '../support/extent.js';
import { eventually, Lab, type CommandResult } from '../support/lab/lab.js';
import { endpointSlice, service, type Manifest } from '../support/lab/objects.js';
import { dualStack } from '../support/lab/packet-table.js';
import { faulty } from '../support/lab/kernel-faults.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { PROGRAM } from '../support/program.js';

class Console {
  constructor(
    private readonly lab: Lab,
    private readonly proxy: Proxy,
  ) {}

  /** Runs the program beside the process. */
  run(...words: readonly string[]): Promise<CommandResult> {
    const socket = ['--status-socket', this.proxy.statusSocket];
    return this.lab.run('node', [PROGRAM, ...words, ...socket]);
  }

  /** What it prints, be all well or not. */
  async print(...words: readonly string[]): Promise<string> {
    const { status, stdout, stderr } = await this.run(...words);
    if (status === null || status > 1 || stderr !== '')
      throw new Error(`${words.join(' ')}: ${String(status)}: ${stderr}`);
    return stdout;
  }

  async explain(...words: readonly string[]): Promise<ExplainedPacket> {
    return JSON.parse(await this.print('explain', ...words, '-o', 'json')) as ExplainedPacket;
  }

  async status(): Promise<ProcessStatus> {
    return JSON.parse(await this.print('status', '-o', 'json')) as ProcessStatus;
  }
}

const WEB: readonly Manifest[] = dualStack('web', {
  type: 'LoadBalancer',
  number: 41,
  loadBalancers: [3],
  externalTrafficPolicy: 'Local',
  affinitySeconds: 600,
  ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: 30001 }],
  endpoints: ['pod-a', { pod: 'pod-c', ready: false }, 'remote-a'],
});

t.test('commands ask a running process', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'remote-a'], [[8080, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: WEB });
  const inside = new Console(lab, proxy);
  await t.test('explain prints the path of a packet, and what the kernel has', async (t) => {
    t.equal(
      await inside.print('explain', '192.0.2.3:80/TCP'),
      [
        'TCP from outside to 192.0.2.3:80 is forwarded to 10.244.1.10:8080, keeping its source',
        'source      an external client: neither a pod by the local detector nor the node',
        'service     default/web:http, load balancer address 192.0.2.3:80/TCP',
        'policy      externalTrafficPolicy Local: endpoints on this node only',
        'endpoints   10.244.1.10:8080  node-1  used',
        '            10.244.1.12:8080  node-1  not used: not ready',
        '            10.244.2.10:8080  node-2  not used: not on this node',
        '            not used: 3 of slice web-ipv6: IPv6',
        'masquerade  no: policy Local keeps the source',
        'affinity    by client address, for 600 s',
        'unanswered  an attempt that is not answered is sent elsewhere after 1 s',
        'note        connections are reset when the address of their pod has been in no EndpointSlice for 1 s',
        'kernel      matches the plan',
        'attempts    counted from now on, for a minute: ask again',
        '',
      ].join('\n'),
    );
    const [v6, manifests] = ['[2001:db8:192::3]:80', proxy.manifestFile];
    t.match(await inside.explain(v6, '--from=fd00:244:1::b'), {
      family: 'IPv6',
      source: { kind: 'pod' },
      verdict: { type: 'forward', endpoints: ['[fd00:244:1::a]:8080', '[fd00:244:2::a]:8080'], masquerade: false },
      kernel: { agrees: true, remembered: null },
      pendingMs: null,
    });
    const offline = ['--manifests', manifests, '--config', proxy.configFile, '--hostname-override', NODE_NAME];
    t.match(await inside.explain(v6, '--from=fd00:244:1::b', ...offline), {
      verdict: { endpoints: ['[fd00:244:1::a]:8080', '[fd00:244:2::a]:8080'] },
      kernel: { agrees: null, unknown: 'only manifests were asked' },
    });

    await t.test('explain shows the affinity of a client', async (t) => {
      for (const [to, from, client] of [
        ['10.96.0.41:80', '10.244.1.11', 'pod-b'],
        ['192.168.0.2:30001', '10.244.1.11%veth-b', 'pod-b'],
        ['[fd00:10:96::41]:80', '2001:db8:203::2', 'client'],
        ['10.96.0.41:80', 'node', 'node'],
      ] as const) {
        const answer = await lab.request({ from: client, to, timeoutMs: 3000 });
        t.ok('at' in answer, `${client} to ${to}`);
        const { kernel } = await inside.explain(to, '--from', from);
        t.equal(kernel.remembered, 'at' in answer ? answer.at : '', `${client} to ${to}`);
      }
      t.match(
        await inside.print('explain', '10.96.0.41:80', '--from', '10.244.1.11'),
        /^remembered {2}the kernel sends this client to 10\.244\.[12]\.10:8080 again$/m,
      );
    });
  });

  await t.test('dump names the mode that it reads if the proxy that runs has another one', async (t) => {
    const { status, stdout, stderr } = await inside.run('dump');
    t.match({ status, stdout }, { status: 0, stdout: '' });
    t.match(stderr, /this is what mode iptables has: the proxy that runs here is in mode nftables \(--proxy-mode\)/);
    const same = await inside.run('dump', '--proxy-mode', 'nftables');
    t.match(same, { status: 0, stdout: /^IPv4 / });
    t.notMatch(same.stderr, /this is what mode/);
  });

  await t.test('explain takes a Service by name, a URL, and an address without a port', async (t) => {
    const two = service('two', {
      clusterIPs: ['10.96.0.90'],
      ports: [
        { name: 'a', port: 80 },
        { name: 'b', port: 81 },
      ],
    });
    await proxy.apply([...WEB, two]);
    // test/plan/question has every form.
    const forms = [
      'web',
      'svc/web',
      'default/web',
      'default/web:http',
      'web.default',
      'web.default.svc.cluster.local:80',
      'http://web.default/x',
      '10.96.0.41',
      'http://10.96.0.41',
    ];
    for (const to of usually(forms.slice(0, 3), forms))
      t.match(
        await inside.explain(to),
        { destination: '10.96.0.41:80', frontend: { servicePort: 'default/web:http' } },
        to,
      );
    t.match(await inside.explain('two:b'), { destination: '10.96.0.90:81' });
    t.match(
      await inside.explain('web', '--from', 'fd00:244:1::a'),
      { destination: '[fd00:10:96::41]:80' },
      "of the sender's family",
    );
    for (const [to, message] of [
      ['two', /^destination "two": which port of default\/two: a 80\/TCP, b 81\/TCP\n$/],
      ['10.96.0.90', /which port of default\/two: a 80\/TCP, b 81\/TCP/],
      ['two:c', /default\/two has no port c, it has a 80\/TCP, b 81\/TCP\n$/],
      ['gone', /^destination "gone": there is no Service gone\n$/],
      ['shop/web', /there is no Service shop\/web/],
      ['10.9.9.9', /no Service has the address, and there is no port/],
    ] as const)
      t.match(await inside.run('explain', to), { status: 2, stdout: '', stderr: message }, to);
  });

  await t.test('services prints all Services, one, or those with problems', async (t) => {
    await proxy.apply([...WEB, service('empty', { clusterIPs: ['10.96.0.80'], ports: [{ port: 80 }] })]);
    const list = await inside.run('services');
    t.equal(list.status, 1, 'one has a problem');
    t.match(list.stdout, /^SERVICE +TYPE +ADDRESS +PORTS +ENDPOINTS +PROBLEMS\n/);
    t.match(list.stdout, /^default\/empty +ClusterIP +10\.96\.0\.80 +80\/TCP +0\/0 +no endpoints$/m);
    t.match(list.stdout, /^default\/web +LoadBalancer +10\.96\.0\.41 \+\d+ +80:30001\/TCP +\d+\/\d+ +-$/m);
    const wide = await inside.print('services', '-o', 'wide');
    t.match(wide, /^SERVICE +TYPE +ADDRESS +PORTS +ENDPOINTS +NODES +PODS +PROBLEMS\n/);
    t.match(wide, /^default\/web .*10\.96\.0\.41,.* node-1,node-2 +- +-$/m);
    t.match(wide, /^default\/empty .* 0\/0 +- +- +no endpoints$/m);
    const problems = await inside.print('services', '--problems');
    t.match(problems, /default\/empty/);
    t.notMatch(problems, /default\/web /);
    const { rows } = JSON.parse(await inside.print('services', '-o', 'json', '--limit=1')) as ServicesPage;
    t.equal(rows.length, 1);
    for (const named of ['web', 'default/web', '10.96.0.41']) {
      const shown = await inside.print('services', named);
      t.match(shown, /^default\/web, LoadBalancer\naddresses +10\.96\.0\.41, cluster IP\n/, named);
      t.match(shown, /^policies +internal Cluster, external Local$/m);
      t.match(shown, /^endpoints +IPv4 http TCP .*: 2 of 3 used$/m);
      t.match(shown, / 10\.244\.1\.12:8080 +node-1 +- +not used +not ready$/m);
    }
    t.match(await inside.print('services', 'web', '-o', 'json'), /"pod": null/);
    t.match(await inside.run('services', 'web'), { status: 0 });
    t.match(await inside.run('services', 'empty'), {
      status: 1,
      stdout: /^problems +10\.96\.0\.80:80\/TCP: no endpoint/m,
    });
    t.match(await inside.run('services', 'gone'), { status: 1, stdout: 'no Service matches\n0 of 3 Services\n' });
    t.match(await inside.print('services', 'web', '-o', 'yaml'), /^key: default\/web$/m);
    t.match(await inside.run('services', '-o', 'xml'), { status: 2, stderr: /must be one of table, wide, json, yaml/ });
  });

  await t.test('explain refuses wrong questions', async (t) => {
    const rows: readonly (readonly [readonly string[], RegExp])[] = [
      [['10.96.0.41:80', '--from=10.0.0.256'], /^--from: "10.0.0.256" must be external, node, an IP address.*\n$/],
      [
        ['10.96.0.41:80', '--from=veth-z'],
        /^--from: the node has no interface "veth-z" \(it has .*veth-a.*\), and no endpoint is a pod of this name\n$/,
      ],
      [['10.96.0.41:80', '--from=10.244.1.10%eth9'], /^--from: the node has no interface "eth9" .*\n$/],
      [['10.96.0.41:80', '--from=fd00::1'], /are of different families\n$/],
      [[], /^explain needs an argument: address:port\/protocol, or a Service\n\nUsage:/],
    ];
    for (const [words, message] of rows) {
      const { status, stdout, stderr } = await inside.run('explain', ...words);
      t.equal(status, 2, words.join(' '));
      t.equal(stdout, '');
      t.match(stderr, message);
    }
    await proxy.stop();
    for (const words of [['status'], ['explain', '10.96.0.41:80']]) {
      const { status, stderr } = await inside.run(...words);
      t.equal(status, 2);
      t.equal(stderr, `no answer on --status-socket ${proxy.statusSocket}: no pointsman runs there\n`);
    }
  });
});

t.test('explain and status show external damage that cannot be repaired', async (t) => {
  const lab = await Lab.start(t);
  const refusing = join(t.testdir(), 'refusing');
  const env = faulty({ refuse: { nftTransact: 'EBUSY' }, while: refusing });
  const proxy = await Proxy.start(t, lab, { objects: WEB, env });
  const inside = new Console(lab, proxy);
  await writeFile(refusing, '');
  await lab.output('node', ['nft', 'delete', 'element', 'ip', 'kube-proxy', 'frontends', '{ 10.96.0.41 . tcp . 80 }']);
  const { kernel, verdict } = await inside.explain('10.96.0.41:80', '--from=node');
  t.equal(verdict.type, 'forward', 'the plan is what it was');
  t.match(kernel, { agrees: false, missing: { length: 5 }, surplus: [/has elements and the verdict none/] });
  t.match(
    await inside.print('explain', '10.96.0.41:80'),
    /^kernel {6}does NOT match the plan:\n {14}missing: IPv4 frontend 10\.96\.0\.41:80\/TCP /m,
  );
  t.match((await inside.explain('192.0.2.3:80')).kernel, { agrees: true }, 'another frontend is not concerned');
  await lab.output('node', ['nft', 'flush', 'chain', 'ip', 'kube-proxy', 'nat-prerouting']);
  t.match((await inside.explain('192.0.2.3:80')).kernel, { agrees: false }, 'a chain on the way is');
});

t.test('status prints the state of the process', async (t) => {
  const lab = await Lab.start(t);
  const conflict = [
    service('late', { clusterIPs: ['10.96.0.77'], externalIPs: ['198.51.100.9'], ports: [{ port: 80 }] }),
    service('later', { clusterIPs: ['10.96.0.78'], externalIPs: ['198.51.100.9'], ports: [{ port: 80 }] }),
    endpointSlice('late', [{ address: '10.244.1.10', node: NODE_NAME }], [{ port: 80 }]),
  ];
  const proxy = await Proxy.start(t, lab, { objects: WEB });
  const inside = new Console(lab, proxy);
  await proxy.apply([...WEB, ...conflict]);
  const status = await inside.status();
  t.match(status, {
    version: /^v1\.37/,
    pid: Number,
    mode: 'nftables',
    node: NODE_NAME,
    ready: true,
    unsynced: false,
    healthy: true,
    nodeEligible: true,
    pendingMs: null,
    held: null,
    sources: [{ synced: true }],
    families: [
      {
        family: 'IPv4',
        healthy: true,
        services: 4,
        frontends: 7,
        endpoints: 4,
        pendingFrontends: 0,
        failures: { count: 0 },
      },
      { family: 'IPv6', healthy: true, services: 2, frontends: 4, endpoints: 3, conflicts: [] },
    ],
  });
  const [v4] = status.families;
  t.match(v4?.conflicts, [/^conflict: IPv4 198\.51\.100\.9:80\/TCP belongs to default\/late/]);
  t.match(v4?.recentSyncs[0], { full: false, servicePorts: Array });
  t.ok(v4?.slowestSyncs.some(({ syncMs, servicePorts }) => syncMs > 0 && servicePorts.length > 0));
  t.equal(
    status.families.flatMap(({ recentSyncs }) => recentSyncs.filter(({ full }) => full)).length,
    2,
    'the first of each',
  );
  t.ok(status.memory.residentBytes > 1e6 && status.uptimeSeconds > 0);
  const text = await inside.print('status');
  t.match(text, /^pointsman 0\.1\.0 for Kubernetes v1\.37\.\d+, nftables on node-1, process \d+, up \d+s\nhealthy\n/);
  t.match(text, /^IPv4: in sync, 4 Services, 7 frontends, 4 endpoints, 0 frontends pending$/m);
  t.match(text, /^ {2}conflict: IPv4 198\.51\.100\.9:80\/TCP/m);

  const restarted = await eventually('a status after a restart', async () => {
    await proxy.restart();
    return (await inside.status()).families[0] ?? null;
  });
  t.match(restarted.recentSyncs.at(-1), { full: true, transactions: 0 }, 'adopted');
});

for (const mode of ['nftables', 'iptables-nft'] as const) {
  t.test(
    `diff in ${mode} prints what a start would change, and changes nothing`,
    mode === 'nftables' ? {} : inFull,
    async (t) => {
      const lab = await Lab.start(t);
      const proxy = await Proxy.start(t, lab, { objects: WEB, mode });
      const inside = new Console(lab, proxy);
      await proxy.stop();
      const flavor = mode === 'nftables' ? [] : ['--iptables-flavor', 'nft'];
      const offline = ['--config', proxy.configFile, '--hostname-override', NODE_NAME, ...flavor];
      const diff = (): Promise<CommandResult> => inside.run('diff', '--manifests', proxy.manifestFile, ...offline);
      t.match(await diff(), { status: 0, stdout: '' }, 'a stopped process leaves what the next start wants');
      await lab.output('node', ['nft', 'delete', 'table', 'ip', mode === 'nftables' ? 'kube-proxy' : 'nat']);
      const before = await lab.output('node', ['nft', '-s', 'list', 'ruleset']);
      const { status, stdout } = await diff();
      t.equal(status, 1);
      t.match(
        stdout,
        mode === 'nftables'
          ? /^add element ip frontends 10\.96\.0\.41 \. tcp \. 80 : goto /m
          : /^IPv4 nat KUBE-SERVICES -A .* -d 10\.96\.0\.41\/32 /m,
      );
      t.notMatch(stdout, mode === 'nftables' ? / ip6 / : /^IPv6 /m, 'the other family is as it should be');
      t.equal(await lab.output('node', ['nft', '-s', 'list', 'ruleset']), before, 'nothing was changed');
      t.match(
        await inside.run('diff', '--manifests', '/nowhere', ...offline),
        { status: 2 },
        'input that cannot be read',
      );
    },
  );
}
