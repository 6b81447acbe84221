import { durationMilliseconds } from '../../config/duration.js';
import { invalid, printValue } from '../../config/errors.js';
import type { FieldReader } from '../../config/reader.js';
import { REVIEW_VERSIONS, type ReviewVersion } from './authorization.js';
import { Compiler, type Expression } from './cel.js';
import { readConfigurationFile } from './configuration-file.js';

/** One webhook of an `AuthorizationConfiguration`, checked. Times in milliseconds. */
export interface WebhookSettings {
  readonly name: string;
  readonly authorizedTtl: number;
  readonly unauthorizedTtl: number;
  readonly timeout: number;
  readonly version: ReviewVersion;
  /** Whether its silence forbids, or leaves it to the next. */
  readonly deniesOnFailure: boolean;
  /** Null: the API server that is read from. */
  readonly kubeconfig: string | null;
  /** All must hold for it to be asked. */
  readonly conditions: readonly Expression[];
}

const KIND = 'AuthorizationConfiguration';
/** As the API server has it. */
const MAX_TIMEOUT_MS = 30_000;
const MAX_CONDITIONS = 64;
const MAX_NAME = 63;

/** @throws Error with every problem, each with the path of its field. */
export function readAuthorizationFile(text: string): readonly WebhookSettings[] {
  return readConfigurationFile(text, KIND, ['v1', 'v1beta1', 'v1alpha1'], (root, problems) => {
    const webhooks = root
      .sections('authorizers')
      .map((section, index) => new WebhookReader(`${KIND}.authorizers[${index}]`, problems).read(section));
    if (webhooks.length === 0) problems.push(`${KIND}.authorizers: Required value: at least one`);
    for (const [index, { name }] of webhooks.entries())
      if (webhooks.slice(0, index).some((other) => other.name === name))
        problems.push(`${KIND}.authorizers[${index}].name: Duplicate value: ${printValue(name)}`);
    return webhooks;
  });
}

class WebhookReader {
  constructor(
    private readonly path: string,
    private readonly problems: string[],
  ) {}

  read(section: FieldReader): WebhookSettings {
    this.choice(section, this.path, 'type', ['Webhook']);
    const name = section.text('name');
    if (name.length > MAX_NAME || !/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(name))
      this.problems.push(invalid(`${this.path}.name`, name, 'must be a DNS label in lower case'));
    const webhook = section.section('webhook');
    const path = `${this.path}.webhook`;
    const timeout = this.period(webhook, path, 'timeout');
    if (timeout === 0 || timeout > MAX_TIMEOUT_MS)
      this.problems.push(`${path}.timeout: Invalid value: must be greater than 0 and at most 30s`);
    const settings = {
      name,
      timeout,
      authorizedTtl: this.period(webhook, path, 'authorizedTTL'),
      unauthorizedTtl: this.period(webhook, path, 'unauthorizedTTL'),
      version: this.choice(webhook, path, 'subjectAccessReviewVersion', REVIEW_VERSIONS),
      deniesOnFailure: this.choice(webhook, path, 'failurePolicy', ['NoOpinion', 'Deny']) === 'Deny',
      kubeconfig: this.connection(webhook.section('connectionInfo'), `${path}.connectionInfo`),
      conditions: this.conditions(webhook, path),
    };
    webhook.finish();
    section.finish();
    return settings;
  }

  private conditions(webhook: FieldReader, path: string): readonly Expression[] {
    const compiler = new Compiler('request');
    const conditions = webhook.sections('matchConditions');
    const version = webhook.text('matchConditionSubjectAccessReviewVersion');
    if (version !== 'v1' && (version !== '' || conditions.length > 0))
      this.problems.push(invalid(`${path}.matchConditionSubjectAccessReviewVersion`, version, 'must be v1'));
    if (conditions.length > MAX_CONDITIONS)
      this.problems.push(`${path}.matchConditions: Too many: must have at most ${MAX_CONDITIONS} items`);
    return conditions.flatMap((condition, index) => {
      const source = condition.text('expression');
      condition.finish();
      return compiler.compile(source, `${path}.matchConditions[${index}].expression`, ['bool'], this.problems) ?? [];
    });
  }

  private connection(section: FieldReader, path: string): string | null {
    const type = this.choice(section, path, 'type', ['KubeConfigFile', 'InClusterConfig']);
    const file = section.text('kubeConfigFile');
    section.finish();
    const isFile = type === 'KubeConfigFile';
    if (isFile && !file.startsWith('/'))
      this.problems.push(invalid(`${path}.kubeConfigFile`, file, 'must be an absolute path'));
    if (!isFile && file !== '') this.problems.push(`${path}.kubeConfigFile: Forbidden: type is ${type}`);
    return isFile ? file : null;
  }

  private period(section: FieldReader, path: string, field: string): number {
    const duration = section.duration(field);
    if (duration === null) {
      this.problems.push(`${path}.${field}: Required value`);
      return 0;
    }
    const milliseconds = durationMilliseconds(duration);
    if (milliseconds < 0)
      this.problems.push(invalid(`${path}.${field}`, duration, 'must be greater than or equal to 0'));
    return Math.max(0, milliseconds);
  }

  private choice<T extends string>(
    section: FieldReader,
    path: string,
    field: string,
    choices: readonly [T, ...T[]],
  ): T {
    const text = section.text(field);
    const found = choices.find((choice) => choice === text);
    if (found === undefined) this.problems.push(invalid(`${path}.${field}`, text, `must be ${choices.join(' or ')}`));
    return found ?? choices[0];
  }
}
