/** A kubeconfig, or a pod's service account, that cannot be used: every problem found, each naming its field path. Never holds a secret. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
  readonly code = 'KUBECONFIG_INVALID';

  constructor(
    readonly file: string,
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(`${file}: ${problems.join('; ')}`, options);
  }
}

/** Credentials that cannot be had just now: a plugin that failed, a token file that is gone. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
  readonly code = 'CREDENTIALS_UNAVAILABLE';
}
