import { isMapping } from '../../base/mapping.js';
import type { EndpointSliceRow } from '../../state/rows.js';
import { conditionFlags, EndpointSliceBuilder, targetFlags } from './endpoint-slice-builder.js';
import { Fields } from './fields.js';
import type { Interner } from './intern.js';
import type { Translation } from './metadata.js';

/**
 * Translates a discovery.k8s.io/v1 EndpointSlice in its parsed form.
 *
 * @throws TranslateError naming every field that is wrong.
 */
export function translateEndpointSlice(object: unknown, names: Interner): Translation<EndpointSliceRow> {
  const fields = Fields.of(object);
  const slice = new EndpointSliceBuilder(fields, names);
  if (slice.used) {
    const endpoints = fields.list('endpoints');
    for (let index = 0; index < endpoints.length; index++) {
      const endpoint = fields.item('endpoints', endpoints, index);
      if (endpoint !== null) readEndpoint(slice, index, endpoint, names);
    }
  }
  return slice.finish();
}

/** Reads nothing else of an endpoint that is left out. */
function readEndpoint(slice: EndpointSliceBuilder, index: number, endpoint: Fields, names: Interner): void {
  const addresses = endpoint.list('addresses');
  const address = (addresses[0] ?? null) === null ? null : endpoint.textAt('addresses', addresses, 0);
  if (!slice.address(index, address)) return;
  const nodeName = names.text(endpoint.string('nodeName') ?? '');
  const hints = endpoint.lacks('hints') ? null : endpoint.section('hints');
  const zone = names.text(endpoint.string('zone') ?? '');
  slice.endpoint(
    readConditions(endpoint) | readTarget(slice, endpoint),
    nodeName,
    zone,
    hintedNames(hints, 'forZones'),
    hintedNames(hints, 'forNodes'),
  );
}

function readConditions(endpoint: Fields): number {
  if (endpoint.lacks('conditions')) return conditionFlags(null, null, null);
  const conditions = endpoint.section('conditions');
  return conditionFlags(conditions.boolean('ready'), conditions.boolean('serving'), conditions.boolean('terminating'));
}

/** A slice is never refused for a bad target: it does not decide where connections go. */
function readTarget(slice: EndpointSliceBuilder, endpoint: Fields): number {
  const target = endpoint.raw('targetRef');
  if (!isMapping(target)) return targetFlags(null);
  const { kind, name } = target;
  const flags = targetFlags(kind);
  if (flags !== 0 && typeof name === 'string') slice.pod(name);
  return flags;
}

/** Null for a name that is missing; what is no text has been noted and is left out. */
function hintedNames(hints: Fields | null, field: 'forZones' | 'forNodes'): readonly (string | null)[] {
  if (hints === null || hints.lacks(field)) return NO_HINTS;
  const names: (string | null)[] = [];
  for (const hint of hints.sections(field)) {
    const name = hint.string('name');
    if (name !== null || hint.lacks('name')) names.push(name);
  }
  return names;
}

const NO_HINTS: readonly string[] = [];
