import t from 'tap';
import { failure, HEADER, load, loaded } from './load-from.js';

const ARGV = ['--config=c', '--config-dir=d'];

function read(files: Readonly<Record<string, string>>, argv: readonly string[] = ARGV): ReturnType<typeof loaded> {
  return loaded(
    argv,
    Object.fromEntries(Object.entries(files).map(([path, body]) => [path, body === '' ? '' : HEADER + body])),
  );
}

t.test('drop-in files are merged over --config in the order of their names', (t) => {
  const { document, config, warnings } = read({
    c: 'mode: nftables\nclusterCIDR: 10.1.0.0/16\nconntrack: {min: 1, maxPerCore: 2, udpTimeout: 3s}\nnodePortAddresses: [10.0.0.0/8, 11.0.0.0/8]\noomScoreAdj: 1',
    'd/9.yml': 'oomScoreAdj: 4\nfeatureGates: {A: true}',
    'd/20.json': 'oomScoreAdj: 3',
    'd/10.yaml': 'conntrack: {min: 5}\noomScoreAdj: 2\nnodePortAddresses: [12.0.0.0/8]',
    'd/100.conf': 'conntrack: {udpTimeout: ~}\nlogging: {verbosity: 4}',
  });
  t.equal(document.oomScoreAdj, 4, '100 10 20 9');
  t.same(config.nodePortAddresses, ['12.0.0.0/8'], 'lists replace');
  t.match(document.conntrack, { min: 5, maxPerCore: 2, udpTimeout: '0s' }, 'maps merge, null is unset');
  t.equal(document.clusterCIDR, '10.1.0.0/16');
  t.equal(document.logging.verbosity, 4);
  t.same(warnings, ['KubeProxyConfiguration.featureGates: unknown gates have no effect: A']);
  t.end();
});

t.test('files other than drop-ins are ignored, and an empty directory is valid', (t) => {
  const files = { c: 'mode: nftables', 'd/..data': 'x', 'd/.hidden.yaml': 'x', 'd/readme.txt': 'x', 'd/a.yaml~': 'x' };
  t.same(read(files).warnings, []);
  t.same(read({ c: 'mode: nftables', 'd/': '' }).warnings, []);
  t.end();
});

t.test('with --config-dir alone flags are ignored too, so that a first file does not switch them off', (t) => {
  const argv = ['--config-dir=d', '--proxy-mode=ipvs', '--oom-score-adj=7', '-v=3'];
  for (const files of [{ 'd/': '' }, { 'd/a.yaml': 'clusterCIDR: 10.0.0.0/8' }]) {
    const { document, warnings } = read(files, argv);
    t.match(document, { mode: 'iptables', oomScoreAdj: -999, logging: { verbosity: 3 } });
    t.same(warnings, [
      '--oom-score-adj: is ignored because --config-dir is given',
      '--proxy-mode: is ignored because --config-dir is given',
      'KubeProxyConfiguration.mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it',
    ]);
  }
  t.equal(
    read({ 'd/a.yaml': 'hostnameOverride: a' }, ['--config-dir=d', '--hostname-override=B']).config.nodeName,
    'b',
  );
  t.end();
});

t.test('errors in a drop-in file name the file', (t) => {
  const message = (files: Readonly<Record<string, string>>, argv = ARGV): string =>
    failure(() => loaded(argv, files)).message;
  const base = { c: HEADER };
  t.match(message(base), /^failed complete: could not read configuration directory "d": ENOENT/);
  t.equal(
    message({ ...base, 'd/a.yaml': '' }),
    'failed complete: failed to decode: d/a.yaml: the file holds no document',
  );
  t.equal(
    message({ ...base, 'd/a.yaml': 'oomScoreAdj: 1' }),
    'failed complete: failed to decode: d/a.yaml: [document 1.apiVersion: Required value: must be kubeproxy.config.k8s.io/v1alpha1, document 1.kind: Required value: must be KubeProxyConfiguration]',
  );
  t.match(message({ ...base, 'd/a.yaml': 'a: [' }), /^failed complete: failed to decode: d\/a\.yaml: line \d/);
  t.equal(
    message({ ...base, 'd/a.yaml': `${HEADER}conntrack: 5` }),
    'failed complete: failed to decode: d/a.yaml: KubeProxyConfiguration.conntrack: Invalid value: 5: must be a mapping',
  );
  t.end();
});

t.test('violations name the file that set the field, unless there is one file only or a flag set it', (t) => {
  const problems = (files: Readonly<Record<string, string>>, argv = ARGV): readonly string[] =>
    failure(() => read(files, argv)).problems;
  const files = {
    c: 'oomScoreAdj: 2000\nconntrack: {min: -1}\nlogging: {verbosity: 1}',
    'd/a.yaml': 'oomScoreAdj: 3000',
    'd/b.yaml': 'nodePortAddresses: [x]\nmode: nftables',
  };
  t.same(problems(files), [
    'KubeProxyConfiguration.conntrack.min: Invalid value: -1: must be greater than or equal to 0 (from c)',
    'KubeProxyConfiguration.oomScoreAdj: Invalid value: 3000: must be within the range [-1000, 1000] (from d/a.yaml)',
    'KubeProxyConfiguration.nodePortAddresses[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64), or one of primary, localhost, all (from d/b.yaml)',
  ]);
  t.same(problems({ c: 'logging: {verbosity: 1}', 'd/a.yaml': 'oomScoreAdj: 1' }, [...ARGV, '-v=-1']), [
    'KubeProxyConfiguration.logging.verbosity: Invalid value: -1: must be within the range [0, 2147483647]',
  ]);
  t.same(problems({ 'd/a.yaml': 'oomScoreAdj: 3000' }, ['--config-dir=d']), [
    'KubeProxyConfiguration.oomScoreAdj: Invalid value: 3000: must be within the range [-1000, 1000]',
  ]);
  t.end();
});

t.test('lenient decoding of a drop-in file names the file', (t) => {
  const { warnings } = read({
    c: 'mode: nftables\nunknown: 1',
    'd/a.yaml': `oomScoreAdj: 1\noomScoreAdj: 2\n---\nkind: Other\napiVersion: v1`,
  });
  t.same(warnings, [
    'Using lenient decoding as strict decoding failed: c: KubeProxyConfiguration.unknown: unknown field',
    'd/a.yaml: only one KubeProxyConfiguration is used, ignored: document 2 (v1, Other)',
    'Using lenient decoding as strict decoding failed: d/a.yaml: KubeProxyConfiguration.oomScoreAdj: field is set twice, the last one is used',
  ]);
  t.end();
});

t.test('the paths of --config and --config-dir are returned, to be watched', (t) => {
  t.same(read({ c: 'mode: nftables', 'd/': '' }).paths, { file: 'c', directory: 'd' });
  const result = load(['--config=', '--config-dir=']);
  t.same('paths' in result && result.paths, { file: null, directory: null });
  t.end();
});
