import t from 'tap';
import { goPlatform } from '../../src/base/platform.js';
import type { OwnCommand } from '../../src/commands/definition.js';
import { commandNamed } from '../../src/commands/table.js';
import { versionText } from '../../src/commands/version.js';
import { KUBERNETES_VERSION, OWN_VERSION } from '../../src/config/version.js';

/** What the command prints, and its exit status. */
async function run(...argv: readonly string[]): Promise<readonly [text: string, complaint: string, status: number]> {
  let [text, complaint] = ['', ''];
  const status = await (commandNamed('version') as OwnCommand).run(argv, {
    write: (part) => {
      text += part;
      return Promise.resolve();
    },
    complain: (part) => {
      complaint += part;
    },
    isTerminal: false,
    handleSignals: () => undefined,
  });
  return [text, complaint, status];
}

t.test('pointsman version prints the text of --version, and facts of the build as JSON and YAML', async (t) => {
  t.same(await run(), [versionText('short'), '', 0]);
  const facts = {
    version: OWN_VERSION,
    kubernetesVersion: KUBERNETES_VERSION,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '',
    nodeVersion: process.version,
    platform: goPlatform(),
  };
  const [json, , status] = await run('--output', 'json');
  t.same([JSON.parse(json), status], [facts, 0]);
  const [yaml] = await run('-o', 'yaml');
  t.match(yaml, `kubernetesVersion: ${KUBERNETES_VERSION}\n`);
  t.match(yaml, `nodeVersion: ${process.version}\n`);
});

t.test('pointsman version refuses other output formats, words and flags', async (t) => {
  for (const [argv, problem] of [
    [['-o', 'xml'], /^--output: must be text, json or yaml\n\nUsage: pointsman version \[flags\]/],
    [['now'], /^version takes no words\n/],
    [['--outptu', 'json'], /^unknown flag: --outptu; did you mean --output\?\n/],
  ] as const)
    t.match(await run(...argv), ['', problem, 2]);
});
