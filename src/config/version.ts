/** This program's own release, as package.json has it. */
export const OWN_VERSION = '0.1.0';

/** The Kubernetes release whose node proxy this program behaves like. */
export const KUBERNETES_VERSION = 'v1.36.2';

/** Its minor number. */
export const KUBERNETES_MINOR = Number(KUBERNETES_VERSION.split('.')[1]);

/** The release before that one, as `major.minor`: the only one whose hidden metrics may be asked for. */
export const PREVIOUS_MINOR = '1.35';
