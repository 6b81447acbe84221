import { rule } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  embedded,
  field,
  int64,
  list,
  oneOf,
  path,
  required,
  struct,
  text,
  type KindTable,
  type TypeMeta,
} from '../../../../src/config/tables/types.js';
import { EVENT_RATE_KIND, SERVICE_POLICY_KIND } from '../../../../src/config/kinds/admission.js';
import { apiServerKind } from '../../../../src/config/kinds/apiserver-groups.js';
import { gatedByFlag } from './feature-gates.js';

/** Admission plugins of the API server, the one that limits events, and what this program's own webhook refuses. */

const UNUSED_PATH = rule('no-effect', (section) => {
  if (section.has('path') && section.isGiven('configuration'))
    section.warn('no-effect', 'path', 'has no effect beside configuration');
});

/** The plugin's file has neither version nor kind: they are made up for it. */
export const IMAGE_POLICY_META = {
  apiVersion: 'imagepolicy.k8s.io/v1alpha1',
  kind: 'ImagePolicyWebhookConfiguration',
} as const;

/** The kind of a plugin's configuration that does not name it. */
function configurationOf(plugin: Section): TypeMeta | null {
  return plugin.text('name') === 'ImagePolicyWebhook' ? IMAGE_POLICY_META : null;
}

const WEBHOOKS = ['apiserver.config.k8s.io WebhookAdmissionConfiguration'];

/** Admission plugins of Kubernetes whose configuration has a kind. */
const CONFIGURATIONS: Readonly<Record<string, readonly string[]>> = {
  EventRateLimit: ['eventratelimit.admission.k8s.io Configuration'],
  ImagePolicyWebhook: ['imagepolicy.k8s.io ImagePolicyWebhookConfiguration'],
  MutatingAdmissionPolicy: ['apiserver.config.k8s.io MutatingAdmissionPolicyConfiguration'],
  MutatingAdmissionWebhook: WEBHOOKS,
  PodSecurity: ['pod-security.admission.config.k8s.io PodSecurityConfiguration'],
  ResourceQuota: ['apiserver.config.k8s.io ResourceQuotaConfiguration', 'resourcequota.admission.k8s.io Configuration'],
  ValidatingAdmissionPolicy: ['apiserver.config.k8s.io ValidatingAdmissionPolicyConfiguration'],
  ValidatingAdmissionWebhook: WEBHOOKS,
};

const CONFIGURATION = embedded(configurationOf, (plugin) => CONFIGURATIONS[plugin.text('name')] ?? []);

const ADMISSION = struct({
  plugins: list(struct({ name: required(text), path, configuration: CONFIGURATION }, UNUSED_PATH), {
    unique: 'name',
  }),
});

/** Manifests of webhooks and policies that the API server reads at its start. */
const MANIFESTS = { staticManifestsDir: field(scalar('absolute path'), { since: 36 }) };

const MANIFESTS_GATE = gatedByFlag('ManifestBasedAdmissionControlConfig', 'staticManifestsDir', (section) =>
  section.has('staticManifestsDir'),
);

/** Where the webhooks' credentials are. */
const WEBHOOK_ADMISSION = struct({ kubeConfigFile: scalar('absolute path'), ...MANIFESTS }, MANIFESTS_GATE);
const POLICY_ADMISSION = struct(MANIFESTS, MANIFESTS_GATE);

const NAMED = list(text);
const SCOPE = oneOf(
  ...['Terminating', 'NotTerminating', 'BestEffort', 'NotBestEffort', 'PriorityClass', 'CrossNamespacePodAffinity'],
  'VolumeAttributesClass',
);

const SCOPES = list(
  struct(
    { scopeName: required(SCOPE), operator: required(oneOf('In', 'NotIn', 'Exists', 'DoesNotExist')), values: NAMED },
    rule('scope', (section) => {
      const takesValues = ['In', 'NotIn'].includes(section.text('operator'));
      if (takesValues && !section.has('values')) section.refuse('scope', 'values', 'is missing, the operator needs it');
      if (section.has('operator') && !takesValues && section.has('values'))
        section.refuse('scope', 'values', `must not be given with ${section.text('operator')}`);
    }),
  ),
);

/** Resources that must not be created without a quota for them. */
const RESOURCE_QUOTA = struct({
  limitedResources: list(
    struct({ apiGroup: text, resource: required(text), matchContains: NAMED, matchScopes: SCOPES }),
  ),
});

const LEVEL = oneOf('privileged', 'baseline', 'restricted');
const VERSION = scalar('policy version');

const USER_NAMES = rule('required', (section) => {
  for (const [index, name] of section.texts('usernames').entries())
    if (name === '') section.refuse('required', `usernames[${index}]`, 'is empty');
});

const POD_SECURITY = struct({
  defaults: struct({
    ...Object.fromEntries(['enforce', 'audit', 'warn'].map((name) => [name, LEVEL])),
    ...Object.fromEntries(['enforce', 'audit', 'warn'].map((name) => [`${name}-version`, VERSION])),
  }),
  exemptions: struct(
    {
      usernames: list(text, { unique: '' }),
      namespaces: list(scalar('dns label'), { unique: '' }),
      runtimeClasses: list(scalar('dns name'), { unique: '' }),
    },
    USER_NAMES,
  ),
});

/** This one field identifies the file of the plugin. In seconds, and the pause before another try in milliseconds; -1 for none. */
const IMAGE_POLICY = struct({
  imagePolicy: required(
    struct(
      {
        kubeConfigFile: required(path),
        allowTTL: int64,
        denyTTL: int64,
        retryBackoff: int64,
        defaultAllow: bool,
      },
      rule('range', (section) => {
        for (const [name, most] of Object.entries({ allowTTL: 1800, denyTTL: 1800, retryBackoff: 300_000 })) {
          const value = section.number(name) ?? 0;
          if (value !== 0 && value !== -1 && (value < 1 || value > most))
            section.refuse('range', name, 'is out of range', `an integer from 1 to ${most}, or -1 for none`);
        }
      }),
    ),
  ),
});

const PLUGINS = 'apiserver.config.k8s.io';

export const ADMISSION_KINDS: readonly KindTable[] = [
  ...apiServerKind('AdmissionConfiguration', ADMISSION, { v1: {} }, { v1alpha1: {} }),
  { kind: 'WebhookAdmissionConfiguration', group: PLUGINS, versions: { v1: {} }, table: WEBHOOK_ADMISSION },
  ...['ValidatingAdmissionPolicyConfiguration', 'MutatingAdmissionPolicyConfiguration'].map((kind) => ({
    kind,
    group: PLUGINS,
    versions: { v1: { since: 36 } },
    table: POLICY_ADMISSION,
  })),
  { kind: 'ResourceQuotaConfiguration', group: PLUGINS, versions: { v1: {} }, table: RESOURCE_QUOTA },
  {
    kind: 'Configuration',
    group: 'resourcequota.admission.k8s.io',
    versions: { v1alpha1: {}, v1beta1: {} },
    table: RESOURCE_QUOTA,
  },
  {
    kind: 'PodSecurityConfiguration',
    group: 'pod-security.admission.config.k8s.io',
    versions: { v1: {}, v1beta1: {}, v1alpha1: {} },
    table: POD_SECURITY,
  },
  { kind: IMAGE_POLICY_META.kind, group: 'imagepolicy.k8s.io', versions: { v1alpha1: {} }, table: IMAGE_POLICY },
  EVENT_RATE_KIND,
  SERVICE_POLICY_KIND,
];
