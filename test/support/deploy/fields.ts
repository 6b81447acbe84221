import type { ApiObject } from '../api-objects.js';
import { fieldsOf } from './kustomize.js';

interface Attribute {
  /** As it stands in a manifest. */
  readonly baseName: string;
  /** `string`, `V1PodSpec`, `Array<V1Container>`, `{ [key: string]: string; }` … */
  readonly type: string;
}

type Model = readonly Attribute[];

const KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: ['ConfigMap', 'Secret', 'Service', 'ServiceAccount'],
  'apps/v1': ['DaemonSet', 'Deployment'],
  'admissionregistration.k8s.io/v1': ['ValidatingWebhookConfiguration'],
  'rbac.authorization.k8s.io/v1': ['ClusterRole', 'ClusterRoleBinding', 'Role'],
  'monitoring.coreos.com/v1': ['PodMonitor', 'PrometheusRule'],
};

/** Of the Prometheus operator's API, what a manifest here may want; V1LabelSelector and V1ObjectMeta are Kubernetes'. */
const PROMETHEUS_OPERATOR: Readonly<Record<string, Model>> = {
  V1PodMonitor: attributes({ apiVersion: 'string', kind: 'string', metadata: 'V1ObjectMeta', spec: 'PodMonitorSpec' }),
  V1PrometheusRule: attributes({ apiVersion: 'string', kind: 'string', metadata: 'V1ObjectMeta', spec: 'RuleSpec' }),
  RuleSpec: attributes({ groups: 'Array<RuleGroup>' }),
  RuleGroup: attributes({ name: 'string', interval: 'string', rules: 'Array<Rule>' }),
  Rule: attributes({
    record: 'string',
    alert: 'string',
    expr: 'string',
    for: 'string',
    labels: '{ [key: string]: string; }',
    annotations: '{ [key: string]: string; }',
  }),
  PodMonitorSpec: attributes({
    jobLabel: 'string',
    podTargetLabels: 'Array<string>',
    podMetricsEndpoints: 'Array<PodMetricsEndpoint>',
    selector: 'V1LabelSelector',
  }),
  PodMetricsEndpoint: attributes({
    port: 'string',
    path: 'string',
    scheme: 'string',
    authorization: 'SafeAuthorization',
    tlsConfig: 'SafeTLSConfig',
    interval: 'string',
    scrapeTimeout: 'string',
    honorLabels: 'boolean',
    relabelings: 'Array<RelabelConfig>',
    metricRelabelings: 'Array<RelabelConfig>',
  }),
  SafeAuthorization: attributes({ type: 'string', credentials: 'V1SecretKeySelector' }),
  SafeTLSConfig: attributes({ serverName: 'string', insecureSkipVerify: 'boolean' }),
  RelabelConfig: attributes({
    sourceLabels: 'Array<string>',
    separator: 'string',
    targetLabel: 'string',
    regex: 'string',
    replacement: 'string',
    action: 'string',
  }),
};

/** Fields of an object that its kind does not have, and values that are not of their field's type: one line each. */
export async function wrongFields(object: ApiObject): Promise<string[]> {
  const { apiVersion, kind } = object;
  if (KINDS[String(apiVersion)]?.includes(String(kind)) !== true) {
    return [`${String(apiVersion)} ${String(kind)}: not a kind used here`];
  }
  return await wrongIn(object, `V1${String(kind)}`, String(kind));
}

/** The same for any part of an object, of a type named as in the client's models. */
async function wrongIn(value: unknown, type: string, path: string): Promise<string[]> {
  const scalars = type === 'IntOrString' ? ['string', 'number'] : [type];
  if (scalars.includes(typeof value)) return [];
  const list = /^Array<(.+)>$/.exec(type)?.[1];
  if (list !== undefined && Array.isArray(value)) {
    return (await Promise.all(value.map((item, index) => wrongIn(item, list, `${path}[${index}]`)))).flat();
  }
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1];
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (map !== undefined && isObject) return await wrongInMap(value, map, path);
  if (isObject && /^[A-Z]/.test(type)) return await wrongInModel(fieldsOf(value), type, path);
  return [`${path}: ${JSON.stringify(value)} is not of type ${type}`];
}

async function wrongInMap(map: object, type: string, path: string): Promise<string[]> {
  const entries = Object.entries(map).map(([key, value]) => wrongIn(value, type, `${path}[${key}]`));
  return (await Promise.all(entries)).flat();
}

async function wrongInModel(object: ApiObject, type: string, path: string): Promise<string[]> {
  const model = PROMETHEUS_OPERATOR[type] ?? (await clientModel(type));
  const wrong = Object.entries(object).map(async ([name, value]) => {
    const attribute = model.find(({ baseName }) => baseName === name);
    return attribute === undefined
      ? [`${path}.${name}: no such field`]
      : await wrongIn(value, attribute.type, `${path}.${name}`);
  });
  return (await Promise.all(wrong)).flat();
}

/** The attributes of a generated model. Each is a file of its own: together they are tens of megabytes. */
async function clientModel(type: string): Promise<Model> {
  const module: unknown = await import(`@kubernetes/client-node/dist/gen/models/${type}.js`);
  const model: unknown = typeof module === 'object' && module !== null ? Reflect.get(module, type) : null;
  if (typeof model !== 'function') throw new TypeError(`the client has no model ${type}`);
  return Reflect.get(model, 'attributeTypeMap') as Model;
}

function attributes(types: Readonly<Record<string, string>>): Model {
  return Object.entries(types).map(([baseName, type]) => ({ baseName, type }));
}
