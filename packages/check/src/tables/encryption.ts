import { base64Bytes } from '../../../../src/config/tables/spelling.js';
import { exclusive, rule } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  field,
  int32,
  list,
  oneOf,
  required,
  struct,
  text,
  type KindTable,
  type Rule,
} from '../../../../src/config/tables/types.js';

/** How the API server encrypts what it stores. */

const KEY = struct({ name: required(text), secret: required(scalar('base64'), { secret: true }) });

/** @param lengths in bytes. */
function keyLengths(...lengths: readonly number[]): Rule {
  return rule('key-length', (section) => {
    for (const key of section.sections('keys')) {
      const bytes = base64Bytes(key.text('secret'));
      if (key.text('secret') !== '' && bytes !== null && !lengths.includes(bytes.length))
        key.refuse('key-length', 'secret', `has ${bytes.length} bytes`, `${lengths.join(' or ')} bytes in base64`);
    }
  });
}

const KEYS = { keys: required(list(KEY, { min: 1, unique: 'name' })) };
const AES_GCM = struct(KEYS, keyLengths(16, 24, 32));
/** 32 bytes are recommended, and the API server takes what AES does. */
const AES_CBC = struct(KEYS, keyLengths(16, 24, 32));
const SECRETBOX = struct(KEYS, keyLengths(32));

const CACHE = rule('kms-cache', (section) => {
  if (!section.isGiven('cachesize')) return;
  if (section.text('apiVersion') === 'v2') section.refuse('kms-cache', 'cachesize', 'must not be given for KMS v2');
  else if (section.number('cachesize') === 0)
    section.refuse('kms-cache', 'cachesize', 'is zero', 'above 0, or negative for no cache');
});

const PLUGIN_NAME = rule('kms-name', (section) => {
  if (section.text('apiVersion') === 'v2' && section.text('name').includes(':'))
    section.refuse('kms-name', 'name', 'has a colon');
});

/** Off by default, and only a flag of the API server sets it. */
const KMS_V1_OFF = 29;

const KMS_VERSION = rule('deprecated', (section) => {
  if (section.text('apiVersion') === 'v2') return;
  const isOff = section.release >= KMS_V1_OFF;
  const problem = isOff ? 'is KMS v1, which needs --feature-gates=KMSv1=true' : 'is KMS v1, which is deprecated';
  section.warn('deprecated', 'apiVersion', problem, '"v2"');
});

const KMS = struct(
  {
    apiVersion: field(oneOf('v1', 'v2'), { default: 'v1' }),
    name: required(text),
    cachesize: field(int32, { default: 1000 }),
    endpoint: required(scalar('unix url')),
    timeout: field(scalar('duration above 0'), { default: '3s' }),
  },
  CACHE,
  PLUGIN_NAME,
  KMS_VERSION,
);

const PROVIDERS = ['aesgcm', 'aescbc', 'secretbox', 'identity', 'kms'];

const ONE_PROVIDER = rule('required', (section) => {
  if (!PROVIDERS.some((name) => section.isGiven(name)))
    section.refuse('required', '', `needs one of ${PROVIDERS.join(', ')}`);
});

/** Whether a resource list's entry covers all that another one means. */
function covers(one: string, other: string): boolean {
  if (one === '*.*' || one === other) return true;
  if (!one.startsWith('*.')) return false;
  const [, ...group] = other.split('.');
  return group.join('.') === one.slice(2);
}

/**
 * Lists are gone through in order, and the first entry that covers a resource counts. An entry that an earlier one covers does nothing, and two entries of
 * one list must not overlap.
 */
const OVERLAPS = rule('overlap', (section) => {
  const before: string[] = [];
  for (const entry of section.sections('resources')) {
    const own = entry.texts('resources');
    for (const [index, resource] of own.entries()) {
      const say = (problem: string, expected = ''): void => {
        entry.refuse('overlap', `resources[${index}]`, `${JSON.stringify(resource)} ${problem}`, expected);
      };
      if (resource === '*') {
        say('is no wildcard', '"*." for the core group or "*.*" for everything');
        continue;
      }
      const masking = before.find((earlier) => covers(earlier, resource));
      if (masking !== undefined) say(`does nothing, as ${JSON.stringify(masking)} stands before it`);
      const beside = own.find(
        (other, at) => at !== index && covers(other, resource) && (other !== resource || at < index),
      );
      if (beside !== undefined) say(`overlaps ${JSON.stringify(beside)} in the same list`);
    }
    before.push(...own);
  }
});

/** A provider's name identifies the one that reads the stored data: the name of a v2 provider is unique, whatever the versions of the others. */
const KMS_NAMES = rule('unique', (section) => {
  const seen = new Set<string>();
  const providers = section.sections('resources').flatMap((entry) => entry.sections('providers'));
  const isV2 = (kms: Section): boolean => kms.text('apiVersion') === 'v2';
  for (const kms of providers.flatMap((provider) => provider.section('kms') ?? []))
    if (kms.has('name') && seen.size === seen.add(kms.text('name')).size && isV2(kms))
      kms.refuse('unique', 'name', 'is given twice');
});

/** Stored by other names, or not as objects of an API. */
const NO_OBJECTS = ['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations'];

function resourceProblem(resource: string): string | null {
  const [name = '', ...rest] = resource.split('.');
  const group = rest.join('.');
  if (resource !== resource.toLowerCase()) return 'has capital letters';
  if (NO_OBJECTS.includes(resource)) return 'is no resource of an API';
  if (group === 'events.k8s.io') return 'is stored as "events"';
  if (group === 'extensions') return 'is of a group that is no more';
  return group === '*' && name !== '*' ? 'names a resource in all groups' : null;
}

const RESOURCE_NAMES = rule('value', (section) => {
  for (const [index, resource] of section.texts('resources').entries()) {
    const problem = resourceProblem(resource);
    if (problem !== null) section.refuse('value', `resources[${index}]`, `${JSON.stringify(resource)} ${problem}`);
  }
});

export const ENCRYPTION: readonly KindTable[] = [
  {
    kind: 'EncryptionConfiguration',
    group: 'apiserver.config.k8s.io',
    versions: { v1: {} },
    table: struct(
      {
        resources: required(
          list(
            struct(
              {
                resources: required(list(text, { min: 1 })),
                providers: required(
                  list(
                    struct(
                      { aesgcm: AES_GCM, aescbc: AES_CBC, secretbox: SECRETBOX, identity: struct({}), kms: KMS },
                      exclusive(...PROVIDERS),
                      ONE_PROVIDER,
                    ),
                    { min: 1 },
                  ),
                ),
              },
              RESOURCE_NAMES,
            ),
            { min: 1 },
          ),
        ),
      },
      OVERLAPS,
      KMS_NAMES,
    ),
  },
];
