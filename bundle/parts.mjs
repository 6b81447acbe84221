// What of the program is in files of its own, beside pointsman.js: each module is in one of them, and no process has it twice. A file is the function of a
// CommonJS module, whose `find` gives its modules by name; `require('./iptables.js:src/dataplane/iptables/open')` is one of another file, as launch.cjs reads it.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';

const ENTRY = 'src/main.ts';
/** The file of all modules that are in no other. */
export const PROGRAM = 'pointsman';

const YAML = 'node_modules/js-yaml/dist/js-yaml.mjs';

/**
 * By file: the modules that others load with import(), which bring along what only they need; and which other files are read with it, where they have modules that it needs.
 * What several files need is in pointsman.js otherwise.
 */
const PARTS = {
  yaml: { entries: [YAML], uses: [] },
  // Modules that all modes share, and that no process needs without a mode. What removes other modes' rules is read once its own are there.
  reconciler: {
    entries: [
      'differences',
      'generation',
      'ledger',
      'limitations',
      'offending',
      'reconciler',
      'removal/remove',
      'table-view',
    ].map((name) => `src/dataplane/${name}.ts`),
    uses: [],
  },
  xtables: { entries: modulesIn('src/dataplane/xtables'), uses: ['reconciler'] },
  'nftables-table': {
    entries: ['src/dataplane/nftables/listing.ts', 'src/dataplane/nftables/shared-table.ts'],
    uses: ['reconciler'],
  },
  nftables: { entries: ['src/dataplane/nftables/open.ts'], uses: ['nftables-table', 'reconciler'] },
  iptables: { entries: ['src/dataplane/iptables/open.ts'], uses: ['xtables', 'reconciler'] },
  ipvs: { entries: ['src/dataplane/ipvs/open.ts'], uses: ['xtables', 'reconciler'] },
  kernelspace: { entries: ['src/dataplane/kernelspace/open.ts'], uses: ['reconciler'] },
  // Reports of refusals by the kernel: few nodes have any.
  'node-faults': {
    entries: ['src/control/quarantine-reports.ts', 'src/dataplane/node-faults.ts', 'src/dataplane/nftables/faults.ts'],
    uses: ['nftables', 'nftables-table'],
  },
  manifests: { entries: ['src/sources/manifests/start.ts', 'src/sources/manifests/load.ts'], uses: [] },
  commands: {
    // What the definitions of commands load.
    entries: [],
    uses: ['manifests', 'selftest-scene'],
  },
  'access-metrics': { entries: ['src/observe/access-metrics.ts'], uses: [] },
  // Mode nftables with node ports on loopback.
  'node-port-listeners': { entries: ['src/serve/node-port-listeners.ts'], uses: [] },
  attempts: { entries: ['src/control/endpoint-attempts.ts', 'src/dataplane/attempts/counter.ts'], uses: [] },
  // Few clusters are reached so.
  socks5: { entries: ['src/sources/kubernetes/connect/socks5.ts'], uses: [] },
  'exec-plugin': { entries: ['src/sources/kubernetes/auth/exec-plugin.ts'], uses: [] },
  'selftest-scene': { entries: ['src/control/selftest-scene.ts'], uses: [] },
  foreign: { entries: ['src/dataplane/foreign/losses.ts', 'src/dataplane/foreign/print.ts'], uses: [] },
  // Answers of a running process, for its clients.
  status: {
    entries: [
      'src/serve/debug-answers.ts',
      'src/serve/status-answer.ts',
      'src/serve/flagz.ts',
      'src/serve/statusz.ts',
      'src/serve/structured-page.ts',
      'src/serve/observed-node.ts',
      'src/serve/plan-stream.ts',
      'src/serve/selftest-service.ts',
      'src/host/linux/network-facts.ts',
    ],
    uses: ['selftest-scene'],
  },
  // Behind those that it uses, which then know what of theirs is wanted.
  trace: { entries: ['src/cli/trace.ts'], uses: ['foreign', 'status'] },
  // What a command is for: read when the user asks for help, or when a command line is wrong.
  help: { entries: ['src/commands/entry.ts'], uses: [] },
  windows: {
    entries: ['src/cli/service.ts', 'src/host/windows/host.ts', 'src/host/windows/log-file.ts'],
    uses: [],
  },
};

/** In the sources it is there from the start; here only once it is asked for. */
const lazyYaml = {
  name: 'lazy-yaml',
  setup({ initialOptions, onLoad }) {
    onLoad({ filter: /\/base\/yaml-library\.ts$/ }, () => ({
      contents: `export const yamlLibrary = () => require(${JSON.stringify(join(initialOptions.absWorkingDir, YAML))});`,
    }));
  },
};

/** The program prints its own help (src/commands/help.ts). */
const noHelpOfCommander = {
  name: 'no-help-of-commander',
  setup({ onLoad }) {
    onLoad({ filter: /\/commander\/lib\/(?:help|suggestSimilar)\.js$/ }, () => ({ contents: '' }));
  },
};

export const PART_NAMES = Object.keys(PARTS);

function modulesIn(folder) {
  return readdirSync(new URL(`../${folder}`, import.meta.url))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`);
}

/**
 * @param options of esbuild, for every file.
 * @param files what is written for a name: the path, and the text before and behind.
 */
export async function buildParts({ plugins, ...others }, files) {
  const options = { ...others, plugins: [lazyYaml, noHelpOfCommander, ...plugins] };
  const imports = await importsOf(options);
  const apart = new Set(PART_NAMES.flatMap((name) => PARTS[name].entries));
  PARTS.commands.entries = [...imports]
    .filter(([path]) => path.startsWith('src/commands/'))
    .flatMap(([, targets]) => [...targets])
    .flatMap(([key, path]) => (key.startsWith('dynamic-import ') && !apart.has(path) ? [path] : []));
  const homes = homesOf(imports);
  /** Modules that other files ask for, by the file that has them. */
  const wanted = new Map([PROGRAM, ...PART_NAMES].map((name) => [name, new Set()]));
  for (const name of PART_NAMES) for (const entry of PARTS[name].entries) wanted.get(homes.get(entry)).add(entry);

  const elsewhere = (home) => ({
    name: 'elsewhere',
    setup({ onResolve }) {
      onResolve({ filter: /./ }, ({ importer, path, kind }) => {
        const target = imports.get(relative(options.absWorkingDir, importer))?.get(`${kind} ${path}`);
        const there = homes.get(target);
        if (there === undefined || there === home) return undefined;
        wanted.get(there).add(target);
        return { path: `./${there}.js:${nameOf(target)}`, external: true };
      });
    },
  });
  // Which modules a file gives to others is known when those are built.
  for (const name of [...PART_NAMES].reverse().concat(PROGRAM)) {
    const cases = [...wanted.get(name)].sort().map((path) => `case '${nameOf(path)}':return require('./${path}');`);
    const start = name === PROGRAM ? `import './${ENTRY}';` : '';
    await build({
      ...options,
      ...files(name),
      stdin: {
        contents: `${start}export function find(name){switch(name){${cases.join('')}}}`,
        resolveDir: options.absWorkingDir,
        sourcefile: `bundle/${name}.js`,
      },
      plugins: [elsewhere(name), ...options.plugins],
    });
  }
}

function nameOf(path) {
  return path.replace(/\.\w+$/, '');
}

/** What each module imports: for the kind of import and the name in the source, the path. */
async function importsOf(options) {
  const { metafile } = await build({
    ...options,
    entryPoints: [ENTRY, ...PART_NAMES.flatMap((name) => PARTS[name].entries)],
    outdir: '.',
    write: false,
    metafile: true,
    sourcemap: false,
  });
  return new Map(
    Object.entries(metafile.inputs).map(([path, { imports }]) => [
      path,
      new Map(
        imports
          .filter(({ external }) => external !== true)
          .map(({ kind, original, path }) => [`${kind} ${original}`, path]),
      ),
    ]),
  );
}

/** The file of each module. */
function homesOf(imports) {
  const entries = new Set(PART_NAMES.flatMap((name) => PARTS[name].entries));
  const inProgram = reach([ENTRY], imports, (path, kind) => kind !== 'import-statement' && entries.has(path));
  const homes = new Map([...inProgram].map((path) => [path, PROGRAM]));
  const users = new Map();
  for (const name of PART_NAMES)
    for (const path of reach(
      PARTS[name].entries,
      imports,
      (path, kind) => kind !== 'import-statement' && entries.has(path),
    ))
      if (!homes.has(path)) users.set(path, [...(users.get(path) ?? []), name]);
  for (const [path, names] of users)
    homes.set(
      path,
      names.find((name) => names.every((other) => other === name || PARTS[other].uses.includes(name))) ?? PROGRAM,
    );
  return homes;
}

/** All that modules import, themselves as well, without the imports that are left out. */
function reach(paths, imports, leftOut) {
  const found = new Set(paths);
  for (const path of found)
    for (const [key, target] of imports.get(path) ?? []) if (!leftOut(target, key.split(' ', 1)[0])) found.add(target);
  return found;
}
