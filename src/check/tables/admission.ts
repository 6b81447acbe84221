import { rule } from '../../config/tables/rules.js';
import {
  embedded,
  field,
  int,
  list,
  oneOf,
  path,
  required,
  struct,
  text,
  type KindTable,
} from '../../config/tables/types.js';
import { apiServerKind } from '../../config/kinds/apiserver-groups.js';

/** Admission plugins of the API server, and the one that limits events. */

const UNUSED_PATH = rule('no-effect', (section) => {
  if (section.has('path') && section.isGiven('configuration'))
    section.warn('no-effect', 'path', 'has no effect beside configuration');
});

const ADMISSION = struct({
  plugins: list(struct({ name: required(text), path, configuration: embedded() }, UNUSED_PATH), { unique: 'name' }),
});

const UNUSED_CACHE = rule('no-effect', (section) => {
  if (section.text('type') === 'Server' && section.isGiven('cacheSize'))
    section.warn('no-effect', 'cacheSize', 'has no effect for type Server');
});

const EVENT_RATES = struct({
  limits: required(
    list(
      struct(
        {
          type: required(oneOf('Server', 'Namespace', 'User', 'SourceAndObject')),
          qps: required(int(1)),
          burst: required(int(1)),
          cacheSize: field(int(0), { default: 4096 }),
        },
        UNUSED_CACHE,
      ),
      { min: 1, unique: 'type' },
    ),
  ),
});

export const ADMISSION_KINDS: readonly KindTable[] = [
  ...apiServerKind('AdmissionConfiguration', ADMISSION, { v1: {} }, { v1alpha1: {} }),
  { kind: 'Configuration', group: 'eventratelimit.admission.k8s.io', versions: { v1alpha1: {} }, table: EVENT_RATES },
];
