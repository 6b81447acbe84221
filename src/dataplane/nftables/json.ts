import type { NftCommand, NftFamily } from '../../native/contract.js';

/**
 * The part of libnftables-json(5) that our rules use, as types and as small builders. A statement or expression here is exactly what
 * `nft -j` prints, so a rendered ruleset can be read with nft's own documentation.
 */

export type Expression =
  | string
  | number
  | readonly string[]
  | { readonly payload: { readonly protocol: string; readonly field: string } }
  | { readonly meta: { readonly key: string } }
  | { readonly ct: { readonly key: string; readonly dir?: 'original' | 'reply' } }
  | { readonly fib: { readonly result: 'type'; readonly flags: readonly string[] } }
  | { readonly numgen: { readonly mode: 'random'; readonly mod: number; readonly offset: 0 } }
  | { readonly jhash: { readonly mod: number; readonly seed: number; readonly expr: Expression } }
  | { readonly concat: readonly Expression[] }
  | { readonly prefix: { readonly addr: string; readonly len: number } }
  | { readonly map: { readonly key: Expression; readonly data: string } }
  | { readonly '&': readonly [Expression, Expression] }
  | { readonly '|': readonly [Expression, Expression] }
  | { readonly '^': readonly [Expression, Expression] }
  | { readonly elem: { readonly val: Expression; readonly timeout: number } };

export type Statement =
  | { readonly match: { readonly op: '==' | '!=' | 'in'; readonly left: Expression; readonly right: Expression } }
  | { readonly vmap: { readonly key: Expression; readonly data: string } }
  | { readonly mangle: { readonly key: Expression; readonly value: Expression } }
  | { readonly dnat: { readonly family: NftFamily; readonly addr: Expression } }
  | { readonly masquerade: { readonly flags: 'fully-random' } }
  | { readonly 'ct timeout': string }
  | { readonly reject: { readonly type: 'tcp reset' } | null }
  | {
      readonly map: {
        readonly op: 'update' | 'delete';
        readonly elem: Expression;
        readonly data: Expression;
        readonly map: string;
      };
    }
  | {
      readonly set: {
        readonly op: 'update';
        readonly elem: Expression;
        readonly set: string;
        /** The state that the element keeps. */
        readonly stmt?: readonly [{ readonly counter: null }];
      };
    }
  | { readonly jump: { readonly target: string } }
  | { readonly goto: { readonly target: string } }
  | { readonly drop: null }
  | { readonly return: null };

export type Rule = readonly Statement[];

export interface ChainHook {
  readonly type: 'filter' | 'nat';
  readonly hook: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';
  readonly prio: number;
}

export interface Chain {
  readonly name: string;
  /** Null for chains that are only jumped to. */
  readonly hook: ChainHook | null;
  readonly rules: readonly Rule[];
}

/** A set, or a map when it has a data type. */
export interface SetDeclaration {
  readonly name: string;
  readonly type: readonly string[];
  readonly map: 'verdict' | readonly string[] | null;
  readonly flags: readonly ('interval' | 'timeout' | 'dynamic')[];
  /** Seconds; null for elements that stay. */
  readonly timeout: number | null;
  readonly size: number | null;
}

/** For how long conntrack keeps the flows that a rule gives to it, in seconds by state. */
export interface TimeoutDeclaration {
  readonly name: string;
  readonly protocol: 'tcp' | 'udp';
  readonly policy: Readonly<Record<string, number>>;
}

export const meta = (key: 'mark' | 'l4proto' | 'iifname'): Expression => ({ meta: { key } });
export const original = (key: string): Expression => ({ ct: { key, dir: 'original' } });
export const concat = (...parts: readonly Expression[]): Expression => ({ concat: parts });
export const dport: Expression = { payload: { protocol: 'th', field: 'dport' } };
export const sport: Expression = { payload: { protocol: 'th', field: 'sport' } };
export const tcpFlags: Expression = { payload: { protocol: 'tcp', field: 'flags' } };
export const address = (family: NftFamily, field: 'saddr' | 'daddr'): Expression => ({
  payload: { protocol: family, field },
});

export const match = (left: Expression, right: Expression): Statement => ({ match: { op: '==', left, right } });
export const differs = (left: Expression, right: Expression): Statement => ({ match: { op: '!=', left, right } });
/** Any of the bits or states is set. */
export const includes = (left: Expression, right: Expression): Statement => ({ match: { op: 'in', left, right } });
export const vmap = (key: Expression, map: string): Statement => ({ vmap: { key, data: `@${map}` } });
export const setMark = (value: Expression): Statement => ({ mangle: { key: meta('mark'), value } });
export const jump = (target: string): Statement => ({ jump: { target } });
export const goto = (target: string): Statement => ({ goto: { target } });
export const dnatTo = (family: NftFamily, key: Expression, map: string): Statement => ({
  dnat: { family, addr: { map: { key, data: `@${map}` } } },
});
export const update = (set: string, elem: Expression): Statement => ({ set: { op: 'update', elem, set: `@${set}` } });
/** Counts packets by their element, which this makes when there is room. When there is none the rule goes no further. */
export const countBy = (set: string, elem: Expression): Statement => ({
  set: { op: 'update', elem, set: `@${set}`, stmt: [{ counter: null }] },
});
export const updateMap = (map: string, elem: Expression, data: Expression): Statement => ({
  map: { op: 'update', elem, data, map: `@${map}` },
});
/** The element may be mapped to anything: the kernel requires a value in its place. */
export const deleteFromMap = (map: string, elem: Expression, data: Expression): Statement => ({
  map: { op: 'delete', elem, data, map: `@${map}` },
});
export const masquerade: Statement = { masquerade: { flags: 'fully-random' } };
/** From now on the flow's timeouts are those of an object. Only for the first packet of a flow. */
export const useTimeout = (name: string): Statement => ({ 'ct timeout': name });
export const drop: Statement = { drop: null };
export const back: Statement = { return: null };
/** An element that a rule writes, and for how many seconds it stays. */
export const lasting = (val: Expression, timeout: number): Expression => ({ elem: { val, timeout } });

/** A named counter as the kernel lists it. */
export const COUNTER = 'counter';

/** Where an object lives. */
export interface TableName {
  readonly family: NftFamily;
  readonly table: string;
}

export function addTable({ family, table }: TableName): NftCommand {
  return { add: { table: { family, name: table, comment: 'rules of the Kubernetes service proxy' } } };
}

export function deleteTable({ family, table }: TableName): NftCommand {
  return { delete: { table: { family, name: table } } };
}

export function addChain(where: TableName, chain: Chain): NftCommand {
  const hook = chain.hook === null ? {} : { ...chain.hook, policy: 'accept' };
  return { add: { chain: { ...where, name: chain.name, ...hook } } };
}

export function flushChain(where: TableName, name: string): NftCommand {
  return { flush: { chain: { ...where, name } } };
}

export function deleteChain(where: TableName, name: string): NftCommand {
  return { delete: { chain: { ...where, name } } };
}

export function addRule(where: TableName, chain: string, expr: Rule): NftCommand {
  return { add: { rule: { ...where, chain, expr } } };
}

export function addSet(where: TableName, set: SetDeclaration): NftCommand {
  const body = {
    ...where,
    name: set.name,
    type: single(set.type),
    ...(set.map === null ? {} : { map: set.map === 'verdict' ? 'verdict' : single(set.map) }),
    ...(set.flags.length === 0 ? {} : { flags: set.flags }),
    ...(set.timeout === null ? {} : { timeout: set.timeout }),
    ...(set.size === null ? {} : { size: set.size }),
  };
  return { add: set.map === null ? { set: body } : { map: body } };
}

export function addTimeout(where: TableName, { name, protocol, policy }: TimeoutDeclaration): NftCommand {
  return { add: { 'ct timeout': { ...where, name, protocol, l3proto: where.family, policy } } };
}

/** @param declaration as the kernel lists it: a counter is another proxy's, everything else a `ct timeout`. */
export function deleteObject(where: TableName, name: string, declaration: string | undefined): NftCommand {
  return { delete: { [declaration === COUNTER ? COUNTER : 'ct timeout']: { ...where, name } } };
}

export function flushSet(where: TableName, name: string): NftCommand {
  return { flush: { set: { ...where, name } } };
}

export function deleteSet(where: TableName, name: string): NftCommand {
  return { delete: { set: { ...where, name } } };
}

function single(types: readonly string[]): string | readonly string[] {
  const [only, ...rest] = types;
  return only !== undefined && rest.length === 0 ? only : types;
}
