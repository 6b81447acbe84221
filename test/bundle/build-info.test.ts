import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { ownVersion, OWN_VERSION, treeState } from '../../src/config/version.js';
import { projectFile } from '../support/lab/agent.js';

interface Info {
  readonly commit: string;
  readonly date: string;
}
type BuildInfo = (project: string, environment: Readonly<Record<string, string>>) => Info;

const { buildInfo } = (await import(pathToFileURL(projectFile('bundle/build-info.mjs')).href)) as {
  readonly buildInfo: BuildInfo;
};

const noGit = spawnSync('git', ['--version']).status === 0 ? {} : { skip: 'no git' };

t.test('a build knows the commit of its checkout, and whether files were changed', noGit, (t) => {
  const folder = t.testdir({ file: 'one' });
  const env = { GIT_COMMITTER_DATE: '2026-01-31T12:00:00Z', PATH: process.env['PATH'] };
  const git = (...words: readonly string[]): string => {
    const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.org', '-c', 'commit.gpgsign=false'];
    return execFileSync('git', [...identity, ...words], { cwd: folder, env, encoding: 'utf8' }).trim();
  };
  t.same(buildInfo(folder, {}), { commit: '', date: '' }, 'a folder in a checkout is not the checkout');
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  const commit = git('rev-parse', 'HEAD');
  t.same(buildInfo(folder, {}), { commit, date: '2026-01-31T12:00:00Z' });
  writeFileSync(join(folder, 'file'), 'two');
  t.same(buildInfo(folder, {}).commit, `${commit}-dirty`);
  const given = { POINTSMAN_COMMIT: 'abc', SOURCE_DATE_EPOCH: '86400' };
  t.same(buildInfo(folder, given), { commit: 'abc', date: '1970-01-02T00:00:00Z' }, 'the environment comes first');
  t.equal(buildInfo(folder, { SOURCE_DATE_EPOCH: 'yesterday' }).date, '');
  t.end();
});

t.test('the version for users names release, commit and date', (t) => {
  const commit = '0123456789abcdef0123456789abcdef01234567';
  const date = '2026-01-31T12:00:00Z';
  const release = `pointsman ${OWN_VERSION}`;
  t.equal(ownVersion({ commit, date }), `${release}, commit 0123456789ab, ${date}`);
  t.equal(ownVersion({ commit: `${commit}-dirty`, date: '' }), `${release}, commit 0123456789ab-dirty`);
  t.equal(ownVersion({ commit: '', date: '' }), release);
  t.same(
    [`${commit}-dirty`, commit, ''].map((each) => treeState({ commit: each, date })),
    ['dirty', 'clean', ''],
  );
  t.end();
});
