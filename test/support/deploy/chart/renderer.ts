import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { messageOf } from '../../../../src/base/error-message.js';
import type { ApiObject } from '../../api-objects.js';
import { Apt } from '../../apt.js';
import { cachedFolder, output } from '../../cached-folder.js';
import { projectFile } from '../../lab/agent.js';
import { fieldsOf } from '../kustomize.js';

/** Debian's names; Debian has no Helm. */
const PACKAGES = ['golang-go', 'golang-github-masterminds-sprig-dev', 'golang-gopkg-yaml.v3-dev'];
/** Grows with every change to render.go or to what the folder holds. */
const FORMAT = '1';
const SOURCE = projectFile('test/support/deploy/chart/render.go');

/** Renders charts as Helm does, by a program in Go that is built once from Debian's packages (render.go). */
export class ChartRenderer {
  private constructor(private readonly program: string) {}

  /**
   * @param tell is told of each step, which may take minutes the first time.
   * @returns the reason where it cannot be had.
   */
  static get(tell: (step: string) => void): ChartRenderer | string {
    const cache = process.env['POINTSMAN_CHART_CACHE'] ?? join(homedir(), '.cache/pointsman-chart');
    try {
      const folder = cachedFolder(cache, `${FORMAT}-${process.arch}`, (building) => {
        tell("fetching Debian's packages of Go and sprig");
        const apt = new Apt(join(building, 'apt'));
        const root = join(building, 'root');
        apt.unpack(apt.needed(PACKAGES), root);
        apt.close();
        tell('compiling the template engine');
        compile(root, join(building, 'render'));
        rmSync(root, { recursive: true });
      });
      return new ChartRenderer(join(folder, 'render'));
    } catch (error) {
      return `Go and sprig of Debian's packages: ${messageOf(error).split('\n')[0] ?? ''}`;
    }
  }

  /** What the templates of a chart make of its values, all of them. */
  render(chart: string, values: ApiObject): ApiObject[] {
    const folder = mkdtempSync(join(tmpdir(), 'chart-'));
    try {
      const file = join(folder, 'values.json');
      writeFileSync(file, JSON.stringify(values));
      return loadAll(output(this.program, [chart, file]).toString())
        .filter((document) => document !== null)
        .map(fieldsOf);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

/** With the packages as they are unpacked, or as they are installed where apt needed none. */
function compile(root: string, program: string): void {
  const roots = [root, '/'].map((each) => join(each, 'usr/lib')).filter((each) => existsSync(each));
  const goroot = roots
    .flatMap((each) => readdirSync(each).map((name) => join(each, name)))
    .find((each) => /\/go-1\.\d+$/.test(each) && existsSync(join(each, 'bin/go')));
  if (goroot === undefined) throw new Error('there is no /usr/lib/go-1.*');
  const sources = join(root, 'usr/share/gocode/src/render');
  mkdirSync(sources, { recursive: true });
  cpSync(SOURCE, join(sources, 'render.go'));
  const env = {
    PATH: process.env['PATH'],
    GOROOT: goroot,
    GOPATH: [root, '/'].map((each) => join(each, 'usr/share/gocode')).join(':'),
    GO111MODULE: 'off',
    GOFLAGS: '',
    CGO_ENABLED: '0',
    GOCACHE: join(root, 'cache'),
    HOME: root,
  };
  execFileSync(join(goroot, 'bin/go'), ['build', '-o', program, 'render'], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}
