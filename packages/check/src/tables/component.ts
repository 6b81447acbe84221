import { atMost, rule } from '../../../../src/config/tables/rules.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  field,
  int,
  list,
  oneOf,
  orZero,
  parsed,
  path,
  required,
  struct,
  text,
  type Rule,
} from '../../../../src/config/tables/types.js';

/** Sections that components have in common. */

export const CLIENT_CONNECTION = struct({
  kubeconfig: path,
  acceptContentTypes: text,
  contentType: text,
  qps: scalar('number'),
  burst: int(0),
});

/** What is not buffered has no options that count. */
const OUTPUT = struct({ splitStream: bool, infoBufferSize: scalar('quantity') });

const FILES_OF_TEXT = rule('exclusive', (section) => {
  if (section.has('vmodule') && section.has('format') && section.text('format') !== 'text')
    section.refuse('exclusive', 'vmodule', `must not be given with format ${section.text('format')}`);
});

/** How components that log in Kubernetes' way do it. */
export const LOGGING = struct(
  {
    format: field(oneOf('text', 'json'), { default: 'text' }),
    flushFrequency: field(scalar('duration or nanoseconds'), { default: '5s' }),
    verbosity: int(0),
    vmodule: list(struct({ filePattern: required(scalar('file pattern')), verbosity: int(0) })),
    options: struct({ text: OUTPUT, json: OUTPUT }),
  },
  FILES_OF_TEXT,
);

export const DEBUGGING = { enableProfiling: bool, enableContentionProfiling: bool };

/** Profiles of contention are pages among those of profiling. */
export const CONTENTION = rule('no-effect', (section) => {
  if (
    section.truth('enableContentionProfiling') &&
    section.isGiven('enableProfiling') &&
    !section.truth('enableProfiling')
  )
    section.warn('no-effect', 'enableContentionProfiling', 'has no effect as enableProfiling is false');
});

/** Times count only where a leader is elected. */
function whereElected(rule: Rule): Rule {
  return {
    name: rule.name,
    check: (section) => {
      if (section.truth('leaderElect')) rule.check(section);
    },
  };
}

const period = orZero(parsed(scalar('duration above 0')));

export const LEADER_ELECTION = struct(
  {
    leaderElect: field(bool, { default: true }),
    leaseDuration: field(period, { default: '15s' }),
    renewDeadline: field(period, { default: '10s' }),
    retryPeriod: field(period, { default: '2s' }),
    resourceLock: field(oneOf('leases'), { default: 'leases' }),
    resourceName: text,
    resourceNamespace: text,
  },
  whereElected(atMost('renewDeadline', 'leaseDuration', 'strictly')),
  whereElected(atMost('retryPeriod', 'renewDeadline', 'strictly')),
);
