import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Profile, StringTable } from 'pprof-format';
import type { FindSource } from '../observe/source-places.js';

/** A function as V8's inspector names it. */
interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** Where it begins, both counted from 0; -1: not known. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** What `Profiler.stop` gives. */
export interface V8CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  /** The node in which each sample found the process, and the microseconds before it. */
  readonly samples?: readonly number[];
  readonly timeDeltas?: readonly number[];
}

/** A node of what `HeapProfiler.stopSampling` gives. */
export interface V8HeapNode {
  readonly callFrame: CallFrame;
  /** Bytes that it allocated itself. */
  readonly selfSize: number;
  readonly children: readonly V8HeapNode[];
}

/** What was measured in one function called by one stack. */
export interface StackValue {
  /** Innermost first. */
  readonly frames: readonly CallFrame[];
  readonly value: number;
}

/** What a profile's values mean, in the words of pprof. */
export interface Measure {
  readonly type: string;
  readonly unit: string;
  /** Between two samples. */
  readonly period: number;
}

/** Texts by their number in the table. */
interface PprofFunction {
  readonly id: number;
  readonly name: number;
  readonly systemName: number;
  readonly filename: number;
  readonly startLine: number;
}

/** Nothing ran, so no processor was used. */
const IDLE = '(idle)';
const ROOT = '(root)';

/** Nanoseconds in each stack. */
export function cpuStacks({ nodes, samples = [], timeDeltas = [] }: V8CpuProfile): readonly StackValue[] {
  const times = new Map<number, number>();
  samples.forEach((id, index) => times.set(id, (times.get(id) ?? 0) + Math.max(0, timeDeltas[index] ?? 0) * 1000));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return [...times].flatMap(([leaf, value]) => {
    const frames: CallFrame[] = [];
    for (let node = byId.get(leaf); node !== undefined; node = byId.get(parents.get(node.id) ?? -1))
      frames.push(node.callFrame);
    return frames[0]?.functionName === IDLE ? [] : [{ frames, value }];
  });
}

/** Bytes that each stack allocated. */
export function heapStacks(head: V8HeapNode): readonly StackValue[] {
  const stacks: StackValue[] = [];
  const walk = (node: V8HeapNode, callers: readonly CallFrame[]): void => {
    const frames = [node.callFrame, ...callers];
    if (node.selfSize > 0) stacks.push({ frames, value: node.selfSize });
    for (const child of node.children) walk(child, frames);
  };
  walk(head, []);
  return stacks;
}

/**
 * Encodes a profile as `go tool pprof` reads it. It names functions, files and lines, and nothing that they worked on.
 *
 * @param startedAt milliseconds since the epoch.
 */
export async function encodeProfile(
  stacks: readonly StackValue[],
  { type, unit, period }: Measure,
  startedAt: number,
  durationMs: number,
  findSource: FindSource,
): Promise<Buffer> {
  const stringTable = new StringTable();
  const places = new Map<string, PprofFunction>();
  const place = ({ functionName, url, lineNumber, columnNumber }: CallFrame): number => {
    const key = `${functionName} ${url}:${lineNumber}:${columnNumber}`;
    const known = places.get(key);
    if (known !== undefined) return known.id;
    const compiled = { file: url.replace(/^file:\/\//, ''), line: lineNumber + 1, column: columnNumber + 1 };
    const { file, line } = findSource(compiled);
    const name = stringTable.dedup(functionName === '' ? '(anonymous)' : functionName);
    const id = places.size + 1;
    places.set(key, { id, name, systemName: name, filename: stringTable.dedup(file), startLine: line });
    return id;
  };
  const sample = stacks.map(({ frames, value }) => ({
    locationId: frames.filter(({ functionName }) => functionName !== ROOT).map(place),
    value: [Math.round(value)],
  }));
  const valueType = { type: stringTable.dedup(type), unit: stringTable.dedup(unit) };
  const functions = [...places.values()];
  const profile = new Profile({
    stringTable,
    sampleType: [valueType],
    sample,
    // V8 tells where a function begins, not which of its lines ran: a place is a function.
    location: functions.map(({ id, startLine }) => ({ id, line: [{ functionId: id, line: startLine }] })),
    function: functions,
    timeNanos: BigInt(Math.round(startedAt)) * 1_000_000n,
    durationNanos: Math.round(durationMs * 1e6),
    periodType: valueType,
    period,
  });
  return promisify(gzip)(profile.encode());
}
