// Commands of the documentation are run as their reader runs them: extracted from the pages, beside a process on a node
// that serves Services from manifests.
// needs: curl, iptables
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { documentedCommands, type DocumentedCommand } from '../support/documented-commands.js';
import { projectFile } from '../support/lab/agent.js';
import { eventually, Lab, type CommandResult } from '../support/lab/lab.js';
import { endpointSlice, service, type Manifest } from '../support/lab/objects.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { RunningProcess } from '../support/lab/running.js';
import { PROGRAM } from '../support/program.js';

/** Programs whose command lines test/docs-commands.test.ts parses only, each with the reason. */
const PARSED_ONLY: Readonly<Record<string, string>> = {
  kubectl: 'needs a cluster; files that it names exist, and test/deploy validates the manifests',
  helm: 'needs a cluster; test/deploy renders the chart',
  docker: 'needs a container runtime; test/deploy checks the image',
  ctr: 'needs a container runtime',
  skopeo: 'needs a registry',
  cosign: 'needs a key and a signature of the site',
  openssl: 'makes certificates; test/support/certificates.ts makes those of the tests',
  npm: 'builds and tests the project itself; each script that is named exists',
  npx: 'builds and tests the project itself',
  node: 'runs the test and bench programs; each file that is named exists',
  sh: 'makes a release or an image; each file that is named exists, and test/deploy runs them',
  grep: 'of the system, and searches files of the site',
  cmp: 'of the system, and compares files of a release',
  sha256sum: 'of the system, and checks files of a release',
  base64: 'of the system, and reads files of a release',
  ip: 'of the system',
  'iptables-save': 'of the system',
};

/** Command lines of pointsman, and requests by curl, that are parsed only, each with the reason. */
const LINES_PARSED_ONLY: readonly (readonly [line: RegExp, why: string])[] = [
  [
    /^pointsman nodes\b|--node\b|^pointsman check --cluster|^pointsman bugreport --all/,
    'asks the API server: packages/nodes, packages/check',
  ],
  [/^pointsman webhook\b/, 'needs certificates of a cluster: packages/webhook'],
  [/--bootstrap-kubeconfig/, 'needs an API server that signs: test/kernel/client-certificate.test.ts'],
  [/^pointsman .*\bC:\\/, 'for Windows: test/wine'],
  [/^curl .*--cacert/, 'needs certificates of the site: test/kernel/secured.thorough.ts'],
  [/^curl .*(?<!:102(?:49|56)\/\S*)$/, 'asks another program'],
  [/^pointsman (?:—|\d|flags\b)/, 'output or a figure, not a command'],
];

/** Commands that go on until they are stopped, and the first words that they print. */
const LASTING: readonly (readonly [line: RegExp, prints: RegExp])[] = [
  [/^pointsman status --watch/, /^pointsman \d/],
  [/^pointsman top\b(?!.*--count)/, /no traffic|SERVICE/],
  [/^pointsman trace\b/, /waiting for (?:a|\d+) new connection/],
  [/^pointsman ui\b/, /http:\/\//],
];

/** Commands that print nothing where all is well, or write files. */
const SILENT = /^pointsman (?:check|diff|man --all)\b|>|--write-config-to/;

/** Commands that ask the running process where nothing else is asked. */
const ASKS_PROCESS = /^(?:bugreport|explain|selftest|services|status|top|trace|ui)$/;
/** Those that read objects, which here come from manifests. */
const READS_OBJECTS = /^(?:plan|render|dump|diff)$/;

const PORTS = [
  { name: 'https', port: 443, targetPort: 8080 },
  { name: 'http', port: 80, targetPort: 8080 },
  { name: 'dns', port: 53, targetPort: 5353, protocol: 'UDP' as const },
];

/** The Services that examples name: by address, by name, and the API server's own. */
const OBJECTS: readonly Manifest[] = [
  ['default', 'web', '10.96.0.10', ['192.0.2.3'], 'http'] as const,
  ['kube-system', 'dns', '10.96.0.10', undefined, 'dns'] as const,
  ['shop', 'web', '10.96.0.11', ['192.0.2.4'], 'http'] as const,
  ['default', 'kubernetes', '10.96.0.1', undefined, 'https'] as const,
].flatMap(([namespace, name, address, loadBalancerIPs, served]) => {
  const ports = PORTS.filter(({ name: port }) => port === served);
  return [
    service(name, {
      namespace,
      clusterIPs: [address],
      ports,
      ...(loadBalancerIPs === undefined ? {} : { loadBalancerIPs }),
    }),
    endpointSlice(
      name,
      [{ address: '10.244.1.10', node: NODE_NAME }],
      ports.map(({ name: port, targetPort, ...rest }) => ({ ...rest, name: port, port: targetPort })),
      { namespace },
    ),
  ];
});

const print = ({ words }: DocumentedCommand): string => words.join(' ');

const WHOLE = documentedCommands().filter(({ isWhole }) => isWhole);
const isParsedOnly = (command: DocumentedCommand): boolean =>
  PARSED_ONLY[command.words[0] ?? ''] !== undefined || LINES_PARSED_ONLY.some(([line]) => line.test(print(command)));

/** Each once: the command line, and where it is documented. */
const RUN: ReadonlyMap<string, DocumentedCommand> = new Map(
  WHOLE.filter((command) => !isParsedOnly(command)).map((command) => [print(command), command]),
);

/** The working directory of the reader, with the files that commands name. */
function workingDirectory(proxy: Proxy): string {
  const folder = mkdtempSync(join(tmpdir(), 'documented-'));
  for (const name of ['config.conf', 'config.yaml', 'kube-proxy.yaml'])
    copyFileSync(proxy.configFile, join(folder, name));
  const typed = (name: string, apiVersion: string, kind: string, more = ''): void => {
    writeFileSync(join(folder, name), `apiVersion: ${apiVersion}\nkind: ${kind}\n${more}`);
  };
  typed('kubelet.yaml', 'kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration');
  typed('kubeadm.yaml', 'kubeadm.k8s.io/v1beta4', 'ClusterConfiguration');
  typed('tracing.yaml', 'apiserver.config.k8s.io/v1', 'TracingConfiguration', 'endpoint: localhost:4317\n');
  writeFileSync(join(folder, 'kubeadm-flags.env'), 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.1"\n');
  for (const name of ['objects', 'manifests', 'man1', 'kubernetes/manifests', 'kubelet.service.d'])
    mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(
    join(folder, 'kubelet.service.d', '10-kubeadm.conf'),
    '[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n',
  );
  copyFileSync(proxy.manifestFile, join(folder, 'kubernetes', 'manifests', 'web.json'));
  copyFileSync(proxy.configFile, join(folder, 'kubernetes', 'config.conf'));
  for (const path of ['objects/all.json', 'manifests/all.json', 'cluster.yaml'])
    copyFileSync(proxy.manifestFile, join(folder, path));
  symlinkSync(projectFile('demo'), join(folder, 'demo'));
  return folder;
}

/** The words as the reader types them here: with values for placeholders, and paths of the node in the working directory. */
function typed(words: readonly string[]): readonly string[] {
  const files: Readonly<Record<string, string>> = { '--config': 'config.conf', '--manifests': 'objects' };
  return words
    .map((word, index) => (word === '…' ? (files[words[index - 1] ?? ''] ?? '') : word))
    .filter((word) => word !== '' && word !== 'VALUE' && word !== '$flags')
    .map((word) =>
      word
        .replace(/^(['"])(.*)\1$/, '$2')
        .replace('$NODE_NAME', NODE_NAME)
        .replace('/var/lib/kube-proxy/', '')
        .replace('/var/lib/kubelet/', '')
        .replace('/etc/pointsman/', '')
        .replace('/etc/systemd/system/', '')
        .replace(/^\/etc\/(?=kubernetes(?:\/manifests)?$)/, '')
        .replace('/usr/local/share/man/', '')
        .replace('/tmp/', '')
        .replace(/\/\/(?:NODE|localhost):/, '//127.0.0.1:')
        .replace(/^(?:NODE|localhost):/, 'http://127.0.0.1:')
        .replace(/^\*\.yaml$/, 'kube-proxy.yaml')
        .replace(/^web$/, 'default/web')
        .replace('CLIENT-ADDRESS', '10.244.1.11')
        .replace('SERVICE-ADDRESS:PORT', '10.96.0.10:80'),
    );
}

/** A redirection is the shell's. */
const redirected = (words: readonly string[]): readonly string[] => {
  const at = words.findIndex((word) => word.startsWith('>'));
  return at < 0 ? words : words.slice(0, at);
};

t.test('every program in the documentation is run by the test, or excused with a reason', (t) => {
  const unknown = WHOLE.filter(({ words: [program = ''] }) => !['pointsman', 'curl'].includes(program)).filter(
    (command) => !isParsedOnly(command),
  );
  t.same(unknown.map(print), []);
  const used = new Set(documentedCommands().map(({ words: [program = ''] }) => program));
  t.same(
    Object.keys(PARSED_ONLY).filter((program) => !used.has(program)),
    [],
    'no reason without a command',
  );
  t.ok(RUN.size > 60, `${RUN.size} command lines`);
  t.end();
});

t.test('commands in the documentation do what they are documented to do', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, flags: ['--service-telemetry'] });
  const folder = workingDirectory(proxy);
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const socket = ['--status-socket', proxy.statusSocket];
  const inside = (words: readonly string[]): readonly string[] => ['env', '-C', folder, ...words];
  const starts: DocumentedCommand[] = [];

  for (const [line, command] of RUN) {
    const [program = '', first = '', ...rest] = redirected(typed(command.words));
    if (program === 'curl') {
      const answer = await lab.run('node', inside(['curl', '-sf', first, ...rest]));
      t.match(answer, { status: 0, stdout: /./ }, `${command.at}: ${line}`);
      continue;
    }
    if ((first === '' || first.startsWith('--')) && !rest.includes('--write-config-to') && first !== '--version') {
      if (first !== '--cleanup' && first !== '') starts.push(command);
      continue;
    }
    const readsObjects = READS_OBJECTS.test(first) && !rest.includes('--manifests');
    const words = [
      ...['node', PROGRAM, first, ...rest],
      ...(readsObjects ? ['--manifests', 'objects'] : []),
      ...(READS_OBJECTS.test(first) && !rest.includes('--config') ? ['--config', 'config.conf'] : []),
      ...(ASKS_PROCESS.test(first) && !rest.includes('--config') ? socket : []),
    ];
    const lasting = LASTING.find(([pattern]) => pattern.test(line));
    if (lasting === undefined) {
      const result: CommandResult = await lab.run('node', inside(words));
      // 1: something differs or is wrong on this node, as documented; 2 and more: the command did not work.
      t.ok(result.status === 0 || result.status === 1, `${command.at}: ${line}`, { result });
      t.ok(result.stdout !== '' || SILENT.test(line), `${line} prints something`);
      continue;
    }
    let printed = '';
    const running = new RunningProcess(lab.spawn('node', inside(words)), (text) => (printed += text));
    await eventually(`${line}: ${printed}`, () =>
      Promise.resolve(lasting[1].test(printed) || running.end !== null || null),
    );
    t.match(printed, lasting[1], `${command.at}: ${line}`);
    if (running.end === null) await running.stop('SIGTERM');
  }

  await proxy.stop();
  for (const command of starts) {
    const flags = redirected(typed(command.words)).slice(1);
    const own = [...socket, '--hostname-override', NODE_NAME].slice(0, flags.includes('--hostname-override') ? 2 : 4);
    const more = [
      ...(flags.includes('--config') ? [] : ['--config', 'config.conf']),
      ...(flags.includes('--manifests') ? [] : ['--manifests', 'objects']),
    ];
    let printed = '';
    const words = ['node', PROGRAM, ...flags, ...more, ...own];
    const running = new RunningProcess(lab.spawn('node', inside(words)), (text) => (printed += text));
    await eventually('a healthy process', async () => {
      if (running.end !== null) return true;
      const answer = await lab.http('node', 'http://127.0.0.1:10256/healthz');
      return ('status' in answer && answer.status === 200) || null;
    });
    t.equal(running.end, null, `${command.at}: ${print(command)}`, { printed });
    if (running.end !== null) continue;
    await running.stop('SIGTERM');
    t.equal(running.exitCode, 0, 'SIGTERM ends it');
  }
  t.ok(starts.length > 3, `${starts.length} command lines start a process`);
});
