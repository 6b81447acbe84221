import { FAMILIES, familyOf } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { parseMapping } from '../base/mapping.js';
import { printableText } from '../base/printable.js';
import type { Sysctl } from '../base/sysctl.js';
import type { OutputForm } from '../commands/shared-flags.js';
import type { Config } from '../config/config.js';
import { modeProblems, prepareMode, type Machine } from '../control/mode.js';
import { checkNode } from '../control/node-checks.js';
import { lookUpNode } from '../control/node-lookup.js';
import { kernelSettings, planSettings } from '../control/settings.js';
import { everythingOn, modeDefinition, restorableSysctls } from '../dataplane/modes.js';
import { NO_FOOTPRINT } from '../dataplane/removal/footprint.js';
import type { Host, ConntrackSettings, KernelValue } from '../host/host.js';
import { readOnly } from '../native/read-only.js';
import { Planner } from '../plan/planner.js';
import { printConflict, printLimitation, printTable } from '../plan/text.js';
import { formatted } from '../serve/formatted.js';
import { EXPLAIN_PAGE, HEAP_SNAPSHOT_PAGE, STATUS_PAGE } from '../serve/status-pages.js';
import { loadManifests } from '../sources/manifests/load.js';
import { printProblem, type Problem } from '../sources/manifests/problems.js';
import type { Snapshot } from '../state/snapshot.js';
import { Store } from '../state/store.js';
import { ask, askInto } from './ask.js';
import { claimForCleanup } from './sole-proxy.js';

/** What a command prints, and what was wrong with its input. */
export interface Output {
  readonly text: string;
  /** Part of the input was not used, or part of the work was not done. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** Whether all is well by it; absent or null: that is not what was asked. */
  readonly well?: boolean | null;
}

/** Where a command writes. */
export interface OutputParts {
  readonly log: Log;
  readonly write: (text: string) => Promise<void>;
}

/** Writes a command's output; problems go to the log. The exit status: 0 all is well, 1 it is not, or there were errors. */
export async function printOutput(
  { text, errors, warnings, well }: Output,
  { log, write }: OutputParts,
): Promise<number> {
  for (const warning of warnings) log.warn(warning);
  for (const error of errors) log.error(null, error);
  await write(printableText(text));
  if (errors.length > 0) return text === '' && well !== undefined ? 2 : 1;
  return well === false ? 1 : 0;
}

/** The forwarding table. */
export async function plan(config: Config, output: OutputForm = 'text'): Promise<Output> {
  const { planner, problems } = await planned(config);
  const facts = FAMILIES.flatMap((family) => printTable(planner.tables[family]));
  return { text: printFacts(facts, output), ...problems };
}

/** Facts of a table: a line each for people, and taken apart for programs. */
function printFacts(facts: readonly string[], output: OutputForm): string {
  return formatted(output === 'text' ? [] : facts.map(readFact), output, () => facts);
}

/** The ruleset as the mode's own tools print it. */
export async function render(config: Config, { host, addon }: Machine): Promise<Output> {
  const { planner, problems } = await planned(config);
  const tables = FAMILIES.map((family) => planner.tables[family]);
  const { isTcpBeLiberal, conntrackTimeouts } = host;
  return {
    text: await modeDefinition(config.mode).render({ config, addon, isTcpBeLiberal, conntrackTimeouts }, tables),
    ...problems,
  };
}

/** What the kernel holds, in the terms of {@link plan}. */
export async function dump(
  config: Config,
  { host, addon }: Machine,
  log: Log,
  output: OutputForm = 'text',
): Promise<Output> {
  const { planner, problems } = await planned(config);
  const running = await runningMode(config);
  const other =
    running === null || running === config.mode
      ? []
      : [`this is what mode ${config.mode} has: the proxy that runs here is in mode ${running} (--proxy-mode)`];
  return {
    text: printFacts(await dumped(config, { host, addon }, log, planner), output),
    errors: problems.errors,
    warnings: [...problems.warnings, ...other],
  };
}

/** It is only asked in passing. */
const MODE_PATIENCE_MS = 2000;

/** The mode of the proxy that runs here; null: there is none, or it does not answer. */
async function runningMode({ statusSocket }: Config): Promise<string | null> {
  try {
    const { text } = await ask(statusSocket, `${STATUS_PAGE}?output=json`, MODE_PATIENCE_MS);
    const mode = parseMapping(text)?.['mode'];
    return typeof mode === 'string' ? mode : null;
  } catch {
    return null;
  }
}

/** What the kernel holds, a fact a line. @param planner by which it is named. */
export async function dumped(
  config: Config,
  { host, addon }: Machine,
  log: Log,
  { tables }: Planner,
): Promise<readonly string[]> {
  const { families, dataplane } = await prepareMode(config, { host, addon: readOnly(addon) }, FAMILIES, log);
  return (await Promise.all(families.map((family) => dataplane(family).dump(tables[family])))).flat();
}

/** What becomes of a packet: by the manifests where there are some, else by the running process. */
export async function explain(
  config: Config,
  host: Host,
  { from, to, output }: { readonly from: string; readonly to: string; readonly output: OutputForm },
): Promise<Output> {
  if (config.manifests.length === 0) {
    const query = new URLSearchParams({ from, to, output }).toString();
    return { ...(await ask(config.statusSocket, `${EXPLAIN_PAGE}?${query}`)), errors: [], warnings: [] };
  }
  const { explainPlanned, isForwarded, printExplainedPacket, resolveQuestion } =
    await import('../serve/explain-packet.js');
  const { planner, snapshot, problems, complete } = await planned(config);
  // What could not be read may be what the question is about.
  if (!complete) return { text: '', ...problems, well: null };
  const question = resolveQuestion(snapshot, from, to);
  const table = planner.tables[familyOf(question.destination)];
  const answer = explainPlanned({ snapshot, table, settings: planSettings(config) }, host, question);
  const text = formatted(answer, output, printExplainedPacket);
  return { text, ...problems, well: isForwarded(answer) };
}

/**
 * How the running process is doing.
 *
 * @param heapSnapshot file to write a snapshot of its memory to instead; empty: none.
 */
export async function status(config: Config, output: OutputForm, heapSnapshot: string): Promise<Output> {
  if (heapSnapshot !== '') {
    await askInto(config.statusSocket, HEAP_SNAPSHOT_PAGE, heapSnapshot);
    const text = `${heapSnapshot}: the memory of the process, with every credential in it; for V8 tools\n`;
    return { text, errors: [], warnings: [] };
  }
  return { ...(await ask(config.statusSocket, `${STATUS_PAGE}?output=${output}`)), errors: [], warnings: [] };
}

/** Removes everything from the kernel that a proxy in any mode put there. */
export async function cleanup(config: Config, machine: Machine, log: Log): Promise<Output> {
  const { addon, host } = machine;
  const sole = await claimForCleanup(config, machine);
  if ('other' in sole) {
    const running = `nothing is removed while a proxy runs here: stop ${sole.other}`;
    return { text: '', errors: [running], warnings: [] };
  }
  const { removeLeftovers } = await import('../dataplane/removal/remove.js');
  const { problems, kept, freesSysctls } = await removeLeftovers(addon, FAMILIES, everythingOn(host.platform), null);
  const ofSysctls = freesSysctls ? await restoreSysctls(config, host) : [];
  const ofMode = modeDefinition(config.mode).footprint === NO_FOOTPRINT ? await removeOwn(config, machine, log) : [];
  return {
    text: '',
    errors: [
      ...[...problems, ...ofMode].map((error) => `encountered an error while tearing down rules: ${String(error)}`),
      ...ofSysctls,
    ],
    warnings: kept.map((what) => `left in place, because rules of others need it: ${what}`),
  };
}

/**
 * Makes the kernel settings that need full privileges, but for those that rules have to guard, so that the process itself can run with CAP_NET_ADMIN only, and finds out before it whether the
 * kernel and the Node are as it needs them (behaviour CL-62).
 */
export async function init(config: Config, version: string, machine: Machine, log: Log): Promise<Output> {
  const { host } = machine;
  const families = host.families();
  // Before the settings: those of conntrack are only there once the kernel has loaded it, and the trial makes it do so.
  const lacking = await modeProblems(config, machine, families, log);
  const settings = kernelSettings(config, null);
  // Where the mode cannot work its sysctls are not there either, which says nothing new.
  const wanted = lacking.length === 0 ? settings : { ...settings, sysctls: [] };
  const { problems } = await host.applyKernelValues(host.kernelValues(wanted));
  const { node, ...found } = await lookUpNode(config, version, log);
  const checked = checkNode(config, families, node);
  return {
    text: '',
    errors: [
      ...lacking,
      ...problems.map(({ message }) => `could not set kernel parameters: ${message}`),
      ...found.errors,
      ...checked.errors,
    ],
    warnings: [...found.warnings, ...checked.warnings],
  };
}

/** Of a mode that leaves no footprint. Answers what failed. */
async function removeOwn(config: Config, machine: Machine, log: Log): Promise<readonly unknown[]> {
  const { families, remove } = await prepareMode(config, machine, machine.host.families(), log);
  const removals = await Promise.allSettled(families.map(async (family) => remove?.(family)));
  return removals.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
}

export interface Planned {
  readonly planner: Planner;
  readonly snapshot: Snapshot;
  readonly problems: Omit<Output, 'text'>;
  /** Whether all locations of manifests could be read. */
  readonly complete: boolean;
}

/** What the manifests come to. */
export async function planned(config: Config): Promise<Planned> {
  const { rows, problems, complete } = await loadManifests(config.manifests);
  const store = new Store();
  const writer = store.register('manifests');
  writer.apply(rows.map((row) => ({ type: 'upsert', row })));
  writer.complete();
  const { planner, failures } = plannedState(config, store);
  const texts = (severity: Problem['severity']): readonly string[] =>
    problems.filter((problem) => problem.severity === severity).map(printProblem);
  const ofTables = FAMILIES.flatMap((family) => [
    ...[...planner.tables[family].conflicts()].map(printConflict),
    ...[...planner.tables[family].limitations()].map(printLimitation),
  ]);
  const found = { errors: [...texts('error'), ...failures], warnings: [...texts('warning'), ...ofTables] };
  return { planner, snapshot: store.snapshot, problems: found, complete };
}

/** What the state comes to, and what of it could not be planned. */
export function plannedState(
  config: Config,
  store: Store,
): { readonly planner: Planner; readonly failures: readonly string[] } {
  const planner = new Planner(planSettings(config));
  const failures = planner.update(store.snapshot, store.takeChanges());
  return { planner, failures: failures.map(({ message }) => message) };
}

/** A line of `plan` or `dump` taken apart. */
interface Fact {
  readonly family: string;
  readonly subject: string;
  /** Of a frontend; null: it is about something else. */
  readonly frontend: string | null;
  /** What is said; empty: that the subject is there. */
  readonly fact: string;
  readonly value: string;
}

function readFact(line: string): Fact {
  const [family = '', subject = '', ...rest] = line.split(' ');
  const frontend = subject === 'frontend' ? (rest.shift() ?? null) : null;
  const fact = subject === 'frontend' || subject === 'node' ? (rest.shift() ?? '') : '';
  return { family, subject, frontend, fact, value: rest.join(' ') };
}

const UNCHANGED: ConntrackSettings = {
  maxPerCore: 0,
  min: 0,
  tcpBeLiberal: false,
  tcpEstablishedMs: null,
  tcpCloseWaitMs: null,
  udpMs: null,
  udpStreamMs: null,
};

/**
 * Gives the sysctls of modes the kernel's own values, those of them that are as the mode sets them: what they were before the mode is not known to a process that
 * was not there. Answers what failed.
 */
export async function restoreSysctls(
  config: Config,
  host: Pick<Host, 'platform' | 'kernelValues' | 'compareKernelValues' | 'applyKernelValues'>,
): Promise<readonly string[]> {
  const begun = restorableSysctls(host.platform, config);
  const values = (sysctls: readonly Sysctl[]): readonly KernelValue[] =>
    host.kernelValues({ conntrack: UNCHANGED, sysctls, opensLoopback: false });
  const others = new Set((await host.compareKernelValues(values(begun))).map(({ path }) => path));
  const initial = values(begun.map((each) => ({ ...each, value: each.initial ?? each.value })));
  const { problems } = await host.applyKernelValues(initial.filter(({ path }) => !others.has(path)));
  // One that this kernel does not have needs nothing.
  return problems.flatMap(({ errno, message }) => (errno === 'ENOENT' ? [] : [message]));
}
