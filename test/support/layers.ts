import { posix } from 'node:path';
import ts from 'typescript';
import { parsedSource } from './parsed-source.js';

/** Checks that sources keep to the layers: which folder may import which, no cycles, no mode named where none is known. */

interface Arrow {
  /** A folder or file without suffix, relative to src, or a package; empty: all of src. */
  readonly to: string;
  readonly typesOnly: boolean;
}

const values = (to: string): Arrow => ({ to, typesOnly: false });
const types = (to: string): Arrow => ({ to, typesOnly: true });

/** What each layer may import besides itself. */
const ARROWS: Readonly<Record<string, readonly Arrow[]>> = {
  base: [],
  native: [values('base')],
  config: [values('base')],
  host: [values('base')],
  state: [values('base')],
  plan: [values('base'), values('state/rows'), types('state')],
  sources: [
    values('base'),
    values('config/kubeconfig'),
    values('config/tables'),
    types('config'),
    values('state/writer'),
    values('state/rows'),
    types('native/contract'),
  ],
  dataplane: [
    values('base'),
    values('plan/types'),
    values('plan/frontend-key'),
    values('plan/frontend-fields'),
    values('plan/retry'),
    values('plan/text'),
    values('native/contract'),
    values('native/errors'),
    types('plan/facts'),
    types('config'),
  ],
  record: [values('base'), types('state'), types('plan'), types('dataplane')],
  observe: ['base', 'plan/text', 'record']
    .map(values)
    .concat(['config', 'state', 'plan', 'sources', 'dataplane', 'native', 'host/host'].map(types)),
  control: ['base', 'config', 'state', 'plan', 'sources', 'dataplane', 'native/errors', 'record', 'observe']
    .map(values)
    .concat(types('host/host'), types('native')),
  serve: ['base', 'config', 'plan', 'record', 'observe', 'control']
    .map(values)
    .concat(['state', 'sources', 'dataplane', 'host/host', 'native/contract'].map(types)),
  commands: ['base', 'config', 'cli'].map(values).concat(['control/mode', 'host/host', 'observe/log'].map(types)),
  cli: [values('')],
  main: [values('')],
  'packages/check': ['base', 'commands', 'config', 'state', 'plan', 'sources'].map(values),
  'packages/nodes': ['base', 'commands', 'config/host-port', 'sources/kubernetes', 'serve', 'packages/page'].map(
    values,
  ),
  'packages/page': ['base', 'config', 'plan', 'serve'].map(values).concat(types('state'), types('observe')),
  'packages/secured': ['base', 'config', 'observe/rotated-file', 'serve']
    .map(values)
    .concat(types('observe'), types('sources/kubernetes')),
  'packages/webhook': ['base', 'commands', 'config', 'state', 'plan', 'sources', 'observe', 'serve']
    .map(values)
    .concat(values('control/event-limit'), values('packages/secured')),
};

/** What of the trunk loads packages, each by import() where it is asked for. */
const PACKAGE_LOADERS = ['cli/packages', 'commands/table', 'commands/process-commands'];

const MODES = ['nftables', 'iptables', 'ipvs', 'kernelspace'];
const MODE_NAME = new RegExp(MODES.join('|'), 'i');
/** Layers that must not know a mode, not even by name: all but config, the modes themselves, their registry and what reaches their kernel interfaces. */
const MODELESS = [
  'base',
  'host',
  'sources',
  'state',
  'plan',
  'record',
  'control',
  'observe',
  'serve',
  'cli',
  'main',
  'packages/check',
  'packages/nodes',
  'packages/page',
  'packages/secured',
  'packages/webhook',
];
/** Fields of other components' kinds have the names that these gave them. */
const OTHERS_FIELDS = /^packages\/check\/src\/tables\//;
/** What knows a platform by name: the platforms themselves and who hands theirs in. */
const HOST_PLATFORM = /^host\/(linux|windows)\//;
const PLATFORM_KNOWERS = ['host', 'main'];
/** The one file that knows every mode. */
const REGISTRY = 'dataplane/modes';
/** Layers that may load the addon. */
const ADDON_LOADERS = ['native', 'main'];

interface Import {
  /** As written; null when it is computed. */
  readonly specifier: string | null;
  readonly typesOnly: boolean;
  /** By import(), when the module is asked for. */
  readonly isDynamic: boolean;
  readonly line: number;
}

interface SourceFacts {
  readonly imports: readonly Import[];
  /** Lines that load an addon rather than import a module. */
  readonly addonLoads: readonly number[];
  /** Lines with a mode's name in code; comments do not count. */
  readonly modeNames: readonly number[];
}

/**
 * All violations, sorted, one line each; empty when there is none.
 *
 * @param sources text by path relative to src, such as `plan/types.ts`, and of packages relative to the project, such as `packages/nodes/src/api.ts`.
 */
export function layerViolations(sources: ReadonlyMap<string, string>): readonly string[] {
  const violations: string[] = [];
  const graph = new Map<string, string[]>();
  for (const [path, text] of sources) {
    const file = path.replace(/\.ts$/, '');
    const facts = readSource(path, text);
    violations.push(...fileViolations(file, path, facts));
    graph.set(
      file,
      facts.imports.flatMap(({ specifier }) => resolve(file, specifier) ?? []),
    );
  }
  return [...violations, ...cycles(graph)].sort();
}

function fileViolations(file: string, path: string, facts: SourceFacts): readonly string[] {
  const layer = layerOf(file);
  if (!(layer in ARROWS)) return [`${path} belongs to no layer`];
  const violations = facts.imports.flatMap((entry) => {
    const problem = importProblem(file, entry);
    return problem === null ? [] : [`${path}:${entry.line} ${problem}`];
  });
  if (!ADDON_LOADERS.includes(layer))
    violations.push(...facts.addonLoads.map((line) => `${path}:${line} loads an addon`));
  if (MODELESS.includes(layer) && !OTHERS_FIELDS.test(file)) {
    violations.push(...facts.modeNames.map((line) => `${path}:${line} names a mode`));
    if (MODE_NAME.test(path)) violations.push(`${path} is named after a mode`);
  }
  return violations;
}

function importProblem(file: string, { specifier, typesOnly, isDynamic }: Import): string | null {
  const layer = layerOf(file);
  if (specifier === null) return ADDON_LOADERS.includes(layer) ? null : 'imports something computed';
  const target = resolve(file, specifier);
  if (target === null) return null;
  if (target.startsWith('..')) return layer === 'main' ? null : `imports ${specifier}, outside src`;
  const mode = modeOf(target);
  if (mode !== null && file !== REGISTRY && modeOf(file) !== mode && layer !== 'config') return `imports mode ${mode}`;
  if (HOST_PLATFORM.test(target) && !PLATFORM_KNOWERS.includes(layer)) return `imports the platform's ${target}`;
  if (isOfPackage(target) && !/^packages\/[^/]+\/src\//.test(target)) return `imports ${specifier}, which is no source`;
  if (layer === layerOf(target)) return null;
  if (isOfPackage(target) && !isOfPackage(file)) {
    return isDynamic && PACKAGE_LOADERS.includes(file) ? null : `imports package ${target}`;
  }
  const arrows = (ARROWS[layer] ?? []).filter(
    ({ to }) => (to === '' && !isOfPackage(target)) || target === to || target.startsWith(`${to}/`),
  );
  if (arrows.some((arrow) => typesOnly || !arrow.typesOnly)) return null;
  return arrows.length > 0 ? `imports more than types from ${target}` : `imports ${target}`;
}

function layerOf(file: string): string {
  const [first = file, second = ''] = file.split('/');
  return isOfPackage(file) ? `${first}/${second}` : first;
}

function isOfPackage(file: string): boolean {
  return file.startsWith('packages/');
}

/** The mode whose folder a file is in; null for every other. */
function modeOf(file: string): string | null {
  const [layer, folder, ...rest] = file.split('/');
  return layer === 'dataplane' && folder !== undefined && rest.length > 0 && MODES.includes(folder) ? folder : null;
}

/** Path as of the sources, without suffix; null for libraries and computed names. */
function resolve(file: string, specifier: string | null): string | null {
  if (specifier === null || !/^\.\.?(\/|$)/.test(specifier)) return null;
  const folder = posix.dirname(isOfPackage(file) ? `../${file}` : file);
  const path = posix.relative('/project/src', posix.join('/project/src', folder, specifier));
  return path.replace(/\.[cm]?[jt]s$/, '').replace(/^\.\.\/(?=packages\/)/, '');
}

function readSource(path: string, text: string): SourceFacts {
  const source = parsedSource(path, text);
  const imports: Import[] = [];
  const addonLoads: number[] = [];
  const modeNames: number[] = [];
  const visit = (node: ts.Node): void => {
    const line = (): number => source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
    const found = readImport(node);
    if (found !== null) imports.push({ ...found, line: line() });
    const word = wordOf(node);
    if (word !== null && MODE_NAME.test(word)) modeNames.push(line());
    if (word !== null && (/\.node$/.test(word) || word === 'dlopen' || word === 'createRequire'))
      addonLoads.push(line());
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { imports, addonLoads, modeNames };
}

function readImport(node: ts.Node): Omit<Import, 'line'> | null {
  if (ts.isImportDeclaration(node)) {
    return {
      specifier: literal(node.moduleSpecifier),
      typesOnly: node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword,
      isDynamic: false,
    };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    return { specifier: literal(node.moduleSpecifier), typesOnly: node.isTypeOnly, isDynamic: false };
  }
  if (ts.isImportEqualsDeclaration(node) && ts.isExternalModuleReference(node.moduleReference)) {
    return { specifier: literal(node.moduleReference.expression), typesOnly: node.isTypeOnly, isDynamic: false };
  }
  if (ts.isImportTypeNode(node)) {
    const argument = ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node.argument;
    return { specifier: literal(argument), typesOnly: true, isDynamic: false };
  }
  if (ts.isCallExpression(node)) {
    const { expression } = node;
    const imports =
      expression.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(expression) && expression.text === 'require');
    if (imports) return { specifier: literal(node.arguments[0]), typesOnly: false, isDynamic: true };
  }
  return null;
}

function literal(node: ts.Node | undefined): string | null {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : null;
}

/** Text of a name or of a literal, or a part of a template. */
function wordOf(node: ts.Node): string | null {
  if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node) || ts.isLiteralExpression(node)) return node.text;
  return ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) ? node.text : null;
}

/** Groups of files that import each other in a circle, in one folder or in several. Type imports count: they are arrows too. */
function cycles(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const order = new Map<string, number>();
  const stack: string[] = [];
  const found: string[] = [];
  const visit = (file: string): number => {
    const index = order.size;
    order.set(file, index);
    stack.push(file);
    let lowest = index;
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue;
      if (!order.has(next)) lowest = Math.min(lowest, visit(next));
      else if (stack.includes(next)) lowest = Math.min(lowest, order.get(next) ?? lowest);
    }
    if (lowest === index) {
      const circle = stack.splice(stack.indexOf(file)).sort();
      if (circle.length > 1) found.push(`cycle: ${circle.join(', ')}`);
    }
    return lowest;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return found;
}
