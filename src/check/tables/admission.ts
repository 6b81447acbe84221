import { rule } from '../../config/tables/rules.js';
import { embedded, list, path, required, struct, text, type KindTable } from '../../config/tables/types.js';
import { EVENT_RATE_KIND, SERVICE_POLICY_KIND } from '../../config/kinds/admission.js';
import { apiServerKind } from '../../config/kinds/apiserver-groups.js';

/** Admission plugins of the API server, the one that limits events, and what this program's own webhook refuses. */

const UNUSED_PATH = rule('no-effect', (section) => {
  if (section.has('path') && section.isGiven('configuration'))
    section.warn('no-effect', 'path', 'has no effect beside configuration');
});

const ADMISSION = struct({
  plugins: list(struct({ name: required(text), path, configuration: embedded() }, UNUSED_PATH), { unique: 'name' }),
});

export const ADMISSION_KINDS: readonly KindTable[] = [
  ...apiServerKind('AdmissionConfiguration', ADMISSION, { v1: {} }, { v1alpha1: {} }),
  EVENT_RATE_KIND,
  SERVICE_POLICY_KIND,
];
