import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** The folder of the compiled tests. */
export const TESTS = dirname(import.meta.dirname);

/** Of all that test/compile.mjs made: what it made of `src`, `packages`, `test` and `bench`. */
const BUILT = dirname(TESTS);

/** The source of a compiled test file, from the project's folder. */
export function sourceOf(file: string): string {
  return relative(BUILT, file).replace(/\.js$/, '.ts');
}

/** What a compiled test file is called: its path below `test`, and below the project's folder where it is a package's. */
export function testName(file: string): string {
  return relative(BUILT, file).replace(/^test\//, '');
}

function compiled(): readonly string[] {
  const ofPackages = readdirSync(join(BUILT, 'packages')).map((name) => join(BUILT, 'packages', name, 'test'));
  return [TESTS, ...ofPackages]
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)));
}

/** Files that need a kernel with ip_vs, and of nf_tables nothing: see test/uml. */
export const USER_MODE = /\.uml(?:-nightly)?\.js$/;

/** Where the machine is emulated code that V8 compiles costs more than it saves: it has to be translated once more. */
const INTERPRETED = ['--no-opt', '--no-sparkplug'];

/** Which files an extent of test/run.ts has, what its processes find in their environment, and Node's options for them. */
const EXTENTS = {
  usual: { files: /\.test\.js$/, env: {}, options: [] },
  all: { files: /\.(?:test|thorough|uml)\.js$/, env: {}, options: [] },
  nightly: {
    files:
      /\.(?:uml-)?nightly\.js$|\/(?:history|endurance)\.test\.js$|\/heap\.thorough\.js$|\/(?:history-[\w-]+|hostile-iptables-nft\.thorough)\.js$/,
    env: {
      POINTSMAN_ENDURANCE_SECONDS: '600',
      POINTSMAN_HISTORY_ROUNDS: '200',
      POINTSMAN_HEAP_SERVICES: '10000',
    },
    options: [],
  },
  wine: { files: /\.wine\.js$/, env: {}, options: [] },
  vm: { files: /\.vm\.js$/, env: {}, options: INTERPRETED },
  arm64: {
    files:
      /\/native\/(?:wire|misuse|contract-twins)\.test\.js$|\/dataplane\/(?:xtables\/print|ipvs\/render)\.test\.js$/,
    env: {},
    options: [],
  },
  'vm-thorough': { files: /\.vm-thorough\.js$|native\/nft-kernel\.test\.js$/, env: {}, options: INTERPRETED },
} as const;

export type ExtentName = keyof typeof EXTENTS;

/** What of the tests is run, and how. */
export interface Extent {
  readonly name: ExtentName;
  /** Their compiled files. */
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly options: readonly string[];
}

/** The extent that the arguments of test/run.ts name, and of that the files whose paths have one of the other arguments in them. */
export function extentOf(argv: readonly string[]): Extent {
  const name = (Object.keys(EXTENTS) as ExtentName[]).find((each) => each === argv[0]) ?? 'all';
  const wanted = argv[0] === name ? argv.slice(1) : argv;
  const { files: pattern, env, options } = EXTENTS[name];
  const files = compiled()
    .filter((file) => pattern.test(file) && (wanted.length === 0 || wanted.some((part) => file.includes(part))))
    .sort();
  return { name, files, env, options };
}
