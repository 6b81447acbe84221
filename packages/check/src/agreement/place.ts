import { durationMilliseconds, parseDuration } from '../../../../src/config/duration.js';
import { printValue } from '../../../../src/config/errors.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import type { Section } from '../../../../src/config/tables/section.js';

/** A field of a document, and its value. */
export interface Place {
  readonly document: Document;
  readonly path: string;
  readonly value: string;
}

export function findingAt(
  severity: Finding['severity'],
  rule: string,
  { document: { file, document }, path, value }: Place,
  problem: string,
): Finding {
  return { severity, rule, file, document, line: null, path, value: printValue(value), problem, expected: '' };
}

/** A place as a finding at another one names it. */
export function printPlace({ document: { file }, path, value }: Place): string {
  return `${printValue(value)} of ${path} (${file})`;
}

export function printDocument({ file, document }: Document): string {
  return document === null ? file : `${file}, document ${document}`;
}

/** The milliseconds of a duration; 0 for text that is none. */
export function millisecondsOf(text: string): number {
  const duration = parseDuration(text);
  return duration === null ? 0 : durationMilliseconds(duration);
}

/** Tables' documents of a kind. */
export function sectionsOf(
  documents: readonly Document[],
  ...kinds: readonly string[]
): readonly { readonly document: Document; readonly section: Section }[] {
  return documents.flatMap((document) =>
    document.section !== null && kinds.includes(document.kind) ? [{ document, section: document.section }] : [],
  );
}

/** The text of a field within a section, where it is set. */
export function placeOf(document: Document, section: Section | null, name: string): readonly Place[] {
  const value = section?.text(name) ?? '';
  return section === null || value === '' ? [] : [{ document, path: section.pathOf(name), value }];
}

/** An argument that kubeadm gives a component: of a map, or of a list, whose last one counts. Programs take `_` for `-`. */
export function argumentOf(
  document: Document,
  component: Section | null,
  name: string,
  list = 'extraArgs',
): readonly Place[] {
  const isNamed = (given: string): boolean => given.replaceAll('_', '-') === name;
  const asMap = component?.section(list) ?? null;
  if (component === null) return [];
  if (asMap !== null) return placeOf(document, asMap, asMap.names().findLast(isNamed) ?? name);
  const given = component.sections(list).findLast((argument) => isNamed(argument.text('name')));
  const value = given?.text('value') ?? '';
  return value === '' ? [] : [{ document, path: component.pathOf(`${list}.${name}`), value }];
}
